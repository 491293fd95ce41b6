package posture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/test/harness"
)

const (
	secretName  = "PROBE_SECRET"
	secretValue = "hidden-from-others"
)

var (
	writable = []string{"/home/job", "/out", "/run", "/tmp"}

	knobs = []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches",
		"/sys/kernel/uevent_helper", "/proc/sysrq-trigger", "/proc/sys/fs/binfmt_misc/register", "/proc/1/oom_score_adj", "/etc/passwd", "/etc/hosts",
		"/sys/power/state", "/sys/module/nf_conntrack/parameters/hashsize", "/proc/sys/net/ipv4/ip_forward", "/proc/bus/pci", "/proc/irq/0/smp_affinity"}

	secrets = []string{"/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/interrupts", "/proc/softirqs", "/proc/kallsyms", "/proc/kpageflags",
		"/proc/slabinfo", "/proc/vmallocinfo", "/proc/sched_debug", "/proc/schedstat", "/proc/cmdline", "/proc/scsi", "/proc/acpi", "/proc/asound",
		"/sys/firmware", "/sys/class/powercap", "/sys/devices/virtual/powercap", "/sys/class/dmi", "/sys/devices/virtual/dmi", "/sys/kernel/debug",
		"/sys/kernel/tracing", "/sys/kernel/security", "/sys/fs/bpf", "/sys/fs/pstore", "/sys/kernel/notes", "/sys/kernel/vmcoreinfo", "/sys/kernel/slab"}

	addresses = []string{"tcp/169.254.169.254:80", "tcp/172.17.0.1:2375", "tcp/10.0.0.1:80", "udp/8.8.8.8:53", "tcp/192.168.0.1:22", "tcp/[2606:4700:4700::1111]:443"}
)

// runPlain runs the container of all rows that do not disturb each other.
func (w *world) runPlain() (end, error) {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	if err := w.slots.Acquire(ctx, 1); err != nil {
		return end{}, err
	}
	defer w.slots.Release(1)
	var e end
	words := append([]string{"-e", secretName + "=" + secretValue, "--", probeAt, "batch"},
		"status", "ids", "env", "processes", "cgroup", "walk", "clock", "calls /mnt/probe/calls.json",
		"open "+strings.Join(knobs, " "), "read "+strings.Join(slices.Concat(secrets, otherFiles), " "), "nodes "+strings.Join(writable, " "),
		"create /x /etc/x /dev/x /proc/x /sys/x /root/x /sbx/x /sbx/bin/x /sbx/slot/x /mnt/x /mnt/probe/x /workspace/x /data/x /bin/x /home/x",
		"overwrite /proc/self/exe /sbx/bin/sbx-init /sbx/bin/sbx /sbin/docker-init /bin/busybox", "reach "+strings.Join(addresses, " "), "queues",
	)
	o, err := w.command(w.flags(words)...)
	if err != nil || o.Code != 0 {
		return e, fmt.Errorf("the plain container: %w %s", err, o.Stderr)
	}
	id := strings.TrimSpace(o.Stdout)
	for _, step := range []struct {
		args []string
		into func(harness.Output) error
	}{
		{[]string{"wait", id}, func(harness.Output) error { return nil }},
		{[]string{"result", "--json", id}, func(o harness.Output) error { return json.Unmarshal([]byte(o.Stdout), &e.Result) }},
		{[]string{"logs", id}, func(o harness.Output) error { e.output = o.Stdout + o.Stderr; return nil }},
	} {
		o, err := w.command(step.args...)
		if err == nil {
			err = step.into(o)
		}
		if err != nil {
			return e, fmt.Errorf("the plain container: %s: %w", step.args[0], err)
		}
	}
	if e.Status != "success" {
		return e, fmt.Errorf("the plain container ended %s %s %s\n%s", e.Status, e.Reason, e.Detail, e.output)
	}
	return e, nil
}

// otherFiles are read by rows below.
var otherFiles = []string{"/proc/kmsg", "/dev/kmsg", "/proc/self/cgroup", "/proc/self/mountinfo", "/etc/resolv.conf", "/etc/hosts", "/etc/hostname",
	"/proc/net/unix", "/proc/net/route", "/proc/net/ipv6_route", "/proc/sys/kernel/hostname", "/proc/sys/kernel/randomize_va_space",
	"/proc/sys/net/ipv4/conf/all/route_localnet", "/proc/1/comm", "/proc/2/comm", "/proc/self/attr/current", "/proc/self/limits", "/proc/self/uid_map"}

func control(t *testing.T, w *world) {
	e, err := w.plain()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range linesOf(e.output) {
		if l.Errno == "failed" && l.Probe != "reach" {
			t.Errorf("the probe itself failed: %+v", l)
		}
	}
}

func capabilities(t *testing.T, w *world) {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if got := find(t, w.said(t, "status"), set).Detail; got != "0000000000000000" {
			t.Errorf("%s is %s", set, got)
		}
	}
}

func noNewPrivileges(t *testing.T, w *world) {
	for field, want := range map[string]string{"NoNewPrivs": "1", "Seccomp": "2"} {
		if got := find(t, w.said(t, "status"), field).Detail; got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
}

// ownIDs: all of them out of the slot's eight.
func ownIDs(t *testing.T, w *world) {
	lines := w.said(t, "ids")
	first := strings.Fields(find(t, lines, "uid").Detail)[0]
	uid, err := strconv.ParseUint(first, 10, 32)
	if err != nil || uint32(uid) < firstUID || uint32(uid) >= firstUID+slotUIDs || (uint32(uid)-firstUID)%slotStride != 0 {
		t.Errorf("uid %s is none of the slots'", first)
	}
	for _, kind := range []string{"uid", "gid"} {
		if got := find(t, lines, kind).Detail; got != first+" "+first+" "+first {
			t.Errorf("%s: %s", kind, got)
		}
	}
	for _, g := range strings.Fields(find(t, lines, "groups").Detail) {
		if n, err := strconv.ParseUint(g, 10, 32); err != nil || n < uid || n > uid+7 {
			t.Errorf("group %s is none of the slot's", g)
		}
	}
}

func releaseAgent(t *testing.T, w *world) {
	if got := find(t, w.said(t, "cgroup"), "glob release_agent").Detail; got != "" {
		t.Errorf("there is %s", got)
	}
}

func cgroupFiles(t *testing.T, w *world) {
	files, folders := 0, 0
	for _, l := range w.said(t, "cgroup") {
		switch {
		case strings.HasPrefix(l.Call, "glob "):
		case l.Errno != "EACCES" && l.Errno != "EROFS":
			t.Errorf("%s: %s", l.Call, l.Errno)
		case l.Call == "open all":
			n, _ := strconv.Atoi(l.Detail)
			files += n
		case l.Call == "mkdir all":
			n, _ := strconv.Atoi(l.Detail)
			folders += n
		}
	}
	if files < 20 || folders < 1 {
		t.Errorf("only %d files and %d folders were tried", files, folders)
	}
}

func deviceNodes(t *testing.T, w *world) {
	lines := w.said(t, "nodes")
	for _, dir := range writable {
		for _, node := range []string{"block 8:0", "memory 1:1", "whiteout 0:0"} {
			expect(t, lines, "mknod "+node+" in "+dir, "EPERM")
			expect(t, lines, "open "+node+" in "+dir, "ENOENT")
		}
		expect(t, lines, "whiteout by rename in "+dir, "EINVAL")
		expect(t, lines, "mkfifo in "+dir, "OK")
	}
}

func foreignABI(t *testing.T, w *world) {
	e := w.run(t, "--", "/mnt/probe/foreign")
	expectEnd(t, e, "error", "signal")
	if e.SignalName != "SIGSYS" || strings.Contains(e.output, "alive") {
		t.Errorf("ended by %q, said %q", e.SignalName, e.output)
	}
}

func clocks(t *testing.T, w *world) {
	lines := w.said(t, "clock")
	for _, call := range []string{"settimeofday", "adjtimex", "adjtimex tick"} {
		expect(t, lines, call, "EPERM")
	}
	if moved, err := strconv.Atoi(find(t, lines, "moved").Detail); err != nil || moved < -5 || moved > 5 {
		t.Errorf("the clock moved by %d ms", moved)
	}
}

func kernelKnobs(t *testing.T, w *world) {
	for _, path := range knobs {
		expect(t, w.said(t, "open"), path, "EROFS", "EACCES", "ENOENT", "EISDIR")
	}
}

func kernelSecrets(t *testing.T, w *world) {
	for _, path := range secrets {
		if l := find(t, w.said(t, "read"), path); l.Errno == "OK" && l.Detail != "" {
			t.Errorf("%s shows %.200q", path, l.Detail)
		}
	}
}

func kernelLog(t *testing.T, w *world) {
	for path, want := range map[string][]string{"/proc/kmsg": {"OK", "EACCES", "EPERM"}, "/dev/kmsg": {"ENOENT", "EACCES", "EPERM"}} {
		if l := expect(t, w.said(t, "read"), path, want...); l.Detail != "" {
			t.Errorf("%s shows %.200q", path, l.Detail)
		}
	}
}

func otherProcesses(t *testing.T, w *world) {
	for _, l := range w.said(t, "processes") {
		switch {
		case strings.HasPrefix(l.Call, "init "):
			if l.Errno != "EACCES" && l.Errno != "EPERM" && l.Errno != "ENOENT" {
				t.Errorf("%s: %s", l.Call, l.Errno)
			}
		case l.Call == "process 1":
			if strings.TrimSpace(l.Detail) != "/sbx/bin/sbx-init" {
				t.Errorf("init's command line is %q", l.Detail)
			}
		case !strings.HasPrefix(l.Detail, probeAt+" ") && !strings.HasPrefix(l.Detail, "/proc/self/exe "):
			t.Errorf("%s is not the job's: %q", l.Call, l.Detail)
		}
	}
}

func cgroupAndMounts(t *testing.T, w *world) {
	lines := w.said(t, "read")
	limited := 0
	for text := range strings.Lines(find(t, lines, "/proc/self/cgroup").Detail) {
		switch path := strings.TrimSpace(text[strings.LastIndex(text, ":")+1:]); path {
		case "/job":
			limited++
		case "/":
		default:
			t.Errorf("cgroup %q", text)
		}
	}
	if limited == 0 {
		t.Error("the job has no cgroup of its own")
	}
	if mounts := find(t, lines, "/proc/self/mountinfo").Detail; !strings.Contains(mounts, " /out ") || strings.Contains(mounts, " shared:") || strings.Contains(mounts, " master:") {
		t.Errorf("mountinfo:\n%s", mounts)
	}
}

func constants(t *testing.T, w *world) {
	for path, want := range map[string]string{
		"/etc/resolv.conf":          "nameserver 127.0.0.1\noptions ndots:1\n",
		"/etc/hostname":             "sandbox\n",
		"/proc/sys/kernel/hostname": "sandbox\n",
		"/etc/hosts": "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n" +
			"ff00::0\tip6-mcastprefix\nff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n",
	} {
		if got := find(t, w.said(t, "read"), path).Detail; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func leakedDescriptors(t *testing.T, w *world) {
	e := w.probe(t, "descriptors")
	var got []string
	for _, l := range linesOf(e.output) {
		kind, _, _ := strings.Cut(l.Detail, ":")
		got = append(got, l.Call+" "+kind)
	}
	if want := []string{"0 /dev/null", "1 pipe", "2 pipe"}; !slices.Equal(got, want) {
		t.Errorf("open: %q, want %q\n%s", got, want, e.output)
	}
}

func workdir(t *testing.T, w *world) {
	if got := find(t, w.said(t, "env"), "cwd").Detail; got != "/home/job" {
		t.Errorf("cwd is %q", got)
	}
	if e := w.run(t, "-w", "/tmp", "--", "readlink", "/proc/self/cwd"); e.output != "/tmp\n" {
		t.Errorf("cwd is %q", e.output)
	}
}

func touch(t *testing.T, w *world) {
	lines := w.said(t, "create")
	for _, path := range []string{"/x", "/etc/x", "/dev/x", "/sbx/x", "/sbx/bin/x", "/sbx/slot/x", "/mnt/x", "/mnt/probe/x", "/workspace/x", "/data/x", "/bin/x", "/home/x"} {
		expect(t, lines, path, "EROFS")
	}
	expect(t, lines, "/root/x", "EACCES")
	expect(t, lines, "/proc/x", "ENOENT", "EACCES")
	expect(t, lines, "/sys/x", "EROFS")
}

func sharedMemory(t *testing.T, w *world) {
	lines := w.said(t, "queues")
	expect(t, lines, "mq_open", "EMFILE", "ENOSPC")
	expect(t, lines, "/dev/mqueue/probe", "EMFILE", "ENOSPC")
	expect(t, lines, "/dev/shm/probe", "ENOENT")
}

func overwriting(t *testing.T, w *world) {
	lines := w.said(t, "overwrite")
	for _, path := range []string{"/proc/self/exe", "/sbx/bin/sbx-init", "/sbx/bin/sbx", "/bin/busybox"} {
		expect(t, lines, path, "ETXTBSY", "EROFS", "EACCES")
	}
	expect(t, lines, "/sbin/docker-init", "ENOENT")
	expect(t, lines, "a running program of the job", "ETXTBSY")
}

func sockets(t *testing.T, w *world) {
	for _, l := range w.said(t, "walk") {
		if l.Call == "socket" || l.Call == "fifo" {
			t.Errorf("a %s: %s", l.Call, l.Detail)
		}
	}
	ours := 0
	for text := range strings.Lines(find(t, w.said(t, "read"), "/proc/net/unix").Detail) {
		f := strings.Fields(text)
		switch {
		case len(f) < 8 || f[7] == "Path": // sockets without a name, and the heading
		case strings.HasPrefix(f[7], w.d.Dir+"/run/slots/"):
			ours++
		default:
			t.Errorf("a socket called %s", f[7])
		}
	}
	if ours > 1 {
		t.Errorf("%d sockets of the daemon", ours)
	}
}

func network(t *testing.T, w *world) {
	lines := w.said(t, "reach")
	for _, a := range addresses {
		expect(t, lines, a, "ENETUNREACH", "EADDRNOTAVAIL")
	}
	expect(t, lines, "dns", "failed")
	if got := find(t, lines, "interfaces").Detail; got != "lo" {
		t.Errorf("interfaces that are up: %s", got)
	}
	if got := find(t, w.said(t, "read"), "/proc/net/route").Detail; strings.Count(got, "\n") != 1 {
		t.Errorf("routes:\n%s", got)
	}
	if _, err := os.Stat("/sys/class/net/docker0"); err != nil {
		t.Log("this host has no docker0; the gateway's address was tried all the same")
	}
}
