package posture_test

import (
	"fmt"
	"slices"
	"testing"
)

// row is one attack.
type row struct {
	n    int    // its number in the design's list; 0: a control, or one of our own
	what string // the attack
	safe string // the outcome that is safe
	// check makes the attack. Rows of single system calls have theirs in plainCalls, too.
	check func(*testing.T, *world)
	// here says why the right outcome on this machine is another than the design's words, where it is.
	here   string
	notRun string // why it could not be tried
}

var rows = []row{
	{n: 0, what: "what a job needs", safe: "let through", check: control},
	{n: 1, what: "capabilities", safe: "all five sets are zero", check: capabilities},
	{n: 2, what: "no-new-privileges and seccomp", safe: "1 and 2", check: noNewPrivileges},
	{n: 3, what: "ids", safe: "a uid and gid of the slot's own, no group 0", check: ownIDs},
	{n: 4, what: "setuid-root and capability programs of an image", safe: "ids and capabilities unchanged", check: setuidProgram},
	{n: 5, what: "setuid, setgroups, capset", safe: "EPERM"},
	{n: 6, what: "unshare, clone, clone3 with namespaces", safe: "EPERM, EPERM, ENOSYS"},
	{n: 7, what: "mount and the new mount calls", safe: "EPERM"},
	{n: 8, what: "mount of a cgroup, release_agent", safe: "EPERM, file absent", check: releaseAgent},
	{n: 9, what: "writes to cgroup files", safe: "EACCES or EROFS for each", check: cgroupFiles},
	{n: 10, what: "mknod of devices in every writable place", safe: "EPERM, nothing to open", check: deviceNodes},
	{n: 11, what: "open_by_handle_at", safe: "EPERM"},
	{n: 12, what: "io_uring", safe: "EPERM, not EINVAL"},
	{n: 13, what: "AF_VSOCK, natively and by foreign ABIs", safe: "EPERM, a foreign-ABI program is killed", check: foreignABI},
	{n: 14, what: "AF_ALG", safe: "EPERM, not EAFNOSUPPORT"},
	{n: 15, what: "packet, raw and exotic sockets", safe: "EPERM"},
	{n: 16, what: "keyrings", safe: "EPERM"},
	{n: 17, what: "bpf, perf, userfaultfd, kcmp, pidfd_getfd", safe: "EPERM"},
	{n: 18, what: "ptrace, process_vm_*", safe: "EPERM"},
	{n: 19, what: "modules, kexec, reboot, swap, acct, quota", safe: "EPERM"},
	{n: 20, what: "clocks", safe: "EPERM, host clock unchanged", check: clocks},
	{n: 21, what: "real-time and better priorities", safe: "EPERM or EACCES"},
	{n: 22, what: "core_pattern, uevent_helper, sysrq, binfmt_misc", safe: "EROFS, EACCES or ENOENT", check: kernelKnobs},
	{n: 23, what: "kcore, keys, timers, interrupts, kallsyms, firmware, powercap, dmi", safe: "empty or an error", check: kernelSecrets},
	{n: 24, what: "kmsg, dmesg, syslog", safe: "EPERM; nothing to read", check: kernelLog,
		here: "/proc/kmsg is covered by /dev/null, so it opens and is empty instead of failing with EACCES"},
	{n: 25, what: "environment and command lines of others", safe: "own processes only, init's closed", check: otherProcesses},
	{n: 26, what: "/proc/self/cgroup, mountinfo", safe: `path "/" (or our own leaf "/job"); overlay paths show`, check: cgroupAndMounts,
		here: `the command sits in its own cgroup below the container's, so the path is "/job" where limits are`},
	{n: 27, what: "resolv.conf, hosts, hostname", safe: "our constants", check: constants},
	{n: 28, what: "leaked descriptors", safe: "0, 1 and 2", check: leakedDescriptors, here: "a job whose result is its exit status has no result socket"},
	{n: 29, what: "/proc/self/cwd", safe: "our workdir", check: workdir},
	{n: 30, what: "touch /x /etc/x /dev/x", safe: "EROFS each", check: touch, here: "/dev is read-only as well, so EROFS comes before EACCES"},
	{n: 31, what: "/dev/shm and /dev/mqueue", safe: "absent; EMFILE at msgqueue 0", check: sharedMemory},
	{n: 32, what: "overwriting programs that run", safe: "ETXTBSY, EROFS or EACCES", check: overwriting,
		here: "init and sbx are mode 0111 files of root, so EACCES comes before EROFS"},
	{n: 33, what: "sockets in the tree and in /proc/net/unix", safe: "none but our own connection", check: sockets,
		here: "the socket's name is taken away once init is connected, so none is found"},
	{n: 34, what: "metadata service, gateway, other networks, DNS", safe: "no route", check: network},
	{n: 36, what: "shell fork bomb", safe: "EAGAIN at the pids limit, load bounded, killed within 5 s", check: forkBomb},
	{n: 37, what: "10⁵ threads; zombies", safe: "EAGAIN at the pids limit; none left", check: threadsAndZombies},
	{n: 38, what: "descriptors to the limit, and in flight", safe: "EMFILE, ETOOMANYREFS; the daemon's count flat", check: descriptorsToTheLimit},
	{n: 39, what: "twice the memory: anonymous, memfd, tmpfs", safe: "OOM inside, others unaffected", check: twiceTheMemory},
	{n: 40, what: "inodes in every writable place", safe: "ENOSPC at nr_inodes", check: inodes},
	{n: 41, what: "bytes in every writable place", safe: "ENOSPC at its size; host disk unmoved", check: bytesEverywhere},
	{n: 42, what: "image volumes /data, /proc, /dev/shm, /sbx, /srv/x", safe: "shadowed or refused, no volume left", check: imageVolumes},
	{n: 43, what: "all inotify instances, then another job", safe: "the other is unaffected", check: inotifyOfAnother},
	{n: 44, what: "all pipe pages, queues, signals, then another job", safe: "the other is unaffected", check: quotasOfAnother},
	{n: 47, what: "stdout closed, a grandchild on the pipe", safe: "ends with its main process", check: grandchildOnThePipe},
	{n: 48, what: "a command that ignores TERM and forks", safe: "KILL after the grace, all gone", check: ignoresTerm},
	{n: 49, what: "SIGSTOP of its own tree and of init", safe: "the deadline still kills", check: stopped},
	{n: 50, what: "exit 0 from a TERM trap while cancelled", safe: "cancelled, not success", check: trapsTerm},
	{n: 51, what: "exit 137, exit 125, kill -9 $$", safe: "said as what they are", check: lookalikes},
	{n: 52, what: "a child killed for memory, exit 0", safe: "success with oom_killed as evidence", check: childOOM},
	{n: 73, what: "image USER 0, passwd lines for slot uids, huge user", safe: "our uid:gid", check: imageUser,
		here: "the image's user is replaced, not resolved, so a huge one is harmless and not refused; " +
			"engine 20.10 takes a group called like our gid for it, and the gate refuses the container"},
	{n: 74, what: "image ENV, ENTRYPOINT, HEALTHCHECK, STOPSIGNAL, ONBUILD, WORKDIR, LABEL", safe: "all overridden", check: imageConfig},
	{n: 75, what: "image places that are links", safe: "refused, host untouched", check: imageLinks},
	{n: 76, what: "image with 10⁵ labels, 1 MB of ENV, 127 layers, a foreign platform", safe: "refused with a clear error", check: imageSizes},
	{n: 76, what: "image with a foreign manifest media type", safe: "refused", notRun: "the engine takes such a manifest from a registry only, and there is none here"},
	{n: 79, what: "limits 0, −1, null, 1e18, 0.0001 cpus", safe: "refused or the default, never unlimited", check: limitsOfRequests},
	{n: 89, what: "our version of amicontained, deepce and CDK evaluate", safe: "nothing beyond the allow-list", check: evaluate},
	{n: 90, what: "the CIS §5 checks over the inspection", safe: "no warning but 5.2, 5.3, 5.27", check: cis},
	{n: 91, what: "two jobs look for a channel", safe: "no contact", check: covertChannel},
	{n: 94, what: "every way to a set-id bit in every writable place", safe: "EPERM or ENOSYS, none on the host", check: setIDFiles},
	{n: 96, what: "300 loopback connections with full buffers in a 64 MiB job", safe: "bounded; the host's rate unchanged", check: loopbackBuffers},
	{n: 96, what: "thousands of loopback connections", safe: "socket memory below the job's memory limit", check: manyLoopbackBuffers},
	{n: 96, what: "netlink sockets that never read", safe: "socket memory below the job's memory limit", check: netlinkBuffers},
	{n: 97, what: "kill -N 1 for N = 1…64", safe: "init survives, the result is delivered", check: signalsToInit},
	{n: 97, what: "every tmpfs full and the memory too", safe: "the result is delivered, the cause is oom", check: tmpfsAndMemory},
	{n: 97, what: "many small processes at the memory limit", safe: "the result is delivered, the cause is oom", check: manySmall},
	{n: 97, what: "prlimit on init", safe: "EPERM; the result is delivered", check: limitsOfInit},
	{n: 0, what: "runsc: the rows above", safe: "as there", notRun: "runsc is not installed, and registering it means a restart of the engine that others use"},
	{n: 0, what: "cgroup v2: rows 9, 26, 36–41, 52, 96, 97", safe: "as there", notRun: "this machine has cgroup v1; its controllers cannot be moved to v2 while it runs"},
}

// elsewhere are the rows with a daemon of their own, and their tests.
var elsewhere = map[int]func(*testing.T){
	77:  TestTagMovedBetweenAdmissionAndStart,
	88:  TestSecondDaemon,
	100: TestSlotRangeThatMeetsOthers,
}

func TestRows(t *testing.T) {
	images := hostileImages()
	loadImages(t, images)
	w := newWorld(t, names(images))
	if _, err := w.plain(); err != nil { // before any row holds a place
		t.Error(err)
	}
	for _, r := range rows {
		t.Run(fmt.Sprintf("%03d %s", r.n, r.what), func(t *testing.T) {
			if r.notRun != "" {
				t.Skip("not run: " + r.notRun)
			}
			t.Parallel()
			if _, has := plainCalls[r.n]; has || r.check == nil {
				checkCalls(t, w, r.n)
			}
			if r.check != nil {
				r.check(t, w)
			}
		})
	}
}

// The rows this folder answers for.
func TestEveryRowIsThere(t *testing.T) {
	var want []int
	for n := 1; n <= 100; n++ {
		switch {
		case n <= 34, n >= 36 && n <= 44, n >= 47 && n <= 52, n >= 73 && n <= 77,
			slices.Contains([]int{79, 88, 89, 90, 91, 94, 96, 97, 100}, n):
			want = append(want, n)
		}
	}
	for _, n := range want {
		_, other := elsewhere[n]
		if !other && !slices.ContainsFunc(rows, func(r row) bool { return r.n == n }) {
			t.Errorf("row %d is missing", n)
		}
	}
	for _, r := range rows {
		if r.what == "" || r.safe == "" || r.check == nil && r.notRun == "" && plainCalls != nil && plainCalls[r.n] == nil {
			t.Errorf("row %d %q has no attack or no safe outcome", r.n, r.what)
		}
	}
}
