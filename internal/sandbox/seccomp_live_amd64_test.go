package sandbox_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/sandbox"
)

// seccompProbe is one system call made raw inside a real job, and what it must give. Numbers with dead beef above are
// garbage in the upper bits, which the kernel does not look at and a filter may.
type seccompProbe struct {
	name, abi string
	nr        uint64
	args      []string
	want      string // an errno's name, ok, "not EPERM", killed, "killed or denied"
}

var seccompProbes = []seccompProbe{
	{"chmod ok", "", 90, []string{"s:/tmp/f", "0x1ed"}, "ok"},
	{"chmod 4755", "", 90, []string{"s:/tmp/f", "0x9ed"}, "EPERM"},
	{"chmod 2755", "", 90, []string{"s:/tmp/f", "0x5ed"}, "EPERM"},
	{"chmod 4755 garbage", "", 90, []string{"s:/tmp/f", "0xdeadbeef000009ed"}, "EPERM"},
	{"chmod 4755 garbage16", "", 90, []string{"s:/tmp/f", "0xffff09ed"}, "EPERM"},
	{"chmod 1755", "", 90, []string{"s:/tmp/f", "0x3ed"}, "ok"},
	{"fchmod 4755", "", 91, []string{"fd:/tmp/f", "0x9ed"}, "EPERM"},
	{"fchmod ok", "", 91, []string{"fd:/tmp/f", "0x1a4"}, "ok"},
	{"fchmodat 4755", "", 268, []string{"-100", "s:/tmp/f", "0x9ed"}, "EPERM"},
	{"fchmodat ok", "", 268, []string{"-100", "s:/tmp/f", "0x1ed"}, "ok"},
	{"fchmodat2", "", 452, []string{"-100", "s:/tmp/f", "0x9ed", "0"}, "ENOSYS"},
	{"creat 4755", "", 85, []string{"s:/tmp/c1", "0x9ed"}, "EPERM"},
	{"creat ok", "", 85, []string{"s:/tmp/c2", "0x1ed"}, "ok"},
	{"open creat 4755", "", 2, []string{"s:/tmp/o1", "0x42", "0x9ed"}, "EPERM"},
	{"open creat 4755 garbage flags", "", 2, []string{"s:/tmp/o1", "0xdeadbeef00000042", "0x9ed"}, "EPERM"},
	{"open tmpfile 4755", "", 2, []string{"s:/tmp", "0x410002", "0x9ed"}, "EPERM"},
	{"open __tmpfile bit 4755", "", 2, []string{"s:/tmp", "0x400002", "0x9ed"}, "EPERM"},
	{"open tmpfile ok", "", 2, []string{"s:/tmp", "0x410002", "0x1ed"}, "ok"},
	{"open ro garbage mode", "", 2, []string{"s:/tmp/f", "0", "0xffffffffffffffff"}, "ok"},
	{"open creat ok", "", 2, []string{"s:/tmp/o2", "0x42", "0x1ed"}, "ok"},
	{"openat creat 4755", "", 257, []string{"-100", "s:/tmp/o1", "0x42", "0x9ed"}, "EPERM"},
	{"openat creat 2755 garbage", "", 257, []string{"-100", "s:/tmp/o1", "0xdeadbeef00000042", "0xdeadbeef000005ed"}, "EPERM"},
	{"openat tmpfile 4755", "", 257, []string{"-100", "s:/tmp", "0x410002", "0x9ed"}, "EPERM"},
	{"openat ro garbage mode", "", 257, []string{"-100", "s:/tmp/f", "0", "0xffffffffffffffff"}, "ok"},
	{"openat creat ok", "", 257, []string{"-100", "s:/tmp/o3", "0x42", "0x1ed"}, "ok"},
	{"openat2", "", 437, []string{"-100", "s:/tmp/f", "buf:24", "24"}, "ENOSYS"},
	{"mknod reg", "", 133, []string{"s:/tmp/n1", "0x81a4", "0"}, "ok"},
	{"mknod 0", "", 133, []string{"s:/tmp/n0", "0x1a4", "0"}, "ok"},
	{"mknod fifo", "", 133, []string{"s:/tmp/n2", "0x11a4", "0"}, "ok"},
	{"mknod sock", "", 133, []string{"s:/tmp/n3", "0xc1a4", "0"}, "ok"},
	{"mknod reg 4755", "", 133, []string{"s:/tmp/n4", "0x89ed", "0"}, "EPERM"},
	{"mknod 0 4755", "", 133, []string{"s:/tmp/n4", "0x9ed", "0"}, "EPERM"},
	{"mknod chr 0 0", "", 133, []string{"s:/tmp/n5", "0x21a4", "0"}, "EPERM"},
	{"mknod chr garbage", "", 133, []string{"s:/tmp/n5", "0xdeadbeef000021a4", "0"}, "EPERM"},
	{"mknod chr garbage16", "", 133, []string{"s:/tmp/n5", "0x121a4", "0"}, "EPERM"},
	{"mknod blk", "", 133, []string{"s:/tmp/n5", "0x61a4", "0x800"}, "EPERM"},
	{"mknodat chr", "", 259, []string{"-100", "s:/tmp/n5", "0x21a4", "0"}, "EPERM"},
	{"mknodat reg 2755", "", 259, []string{"-100", "s:/tmp/n5", "0x85ed", "0"}, "EPERM"},
	{"mknodat fifo", "", 259, []string{"-100", "s:/tmp/n6", "0x11a4", "0"}, "ok"},
	{"renameat2 whiteout", "", 316, []string{"-100", "s:/tmp/f", "-100", "s:/tmp/f2", "4"}, "EINVAL"},
	{"renameat2 whiteout garbage", "", 316, []string{"-100", "s:/tmp/f", "-100", "s:/tmp/f2", "0xdeadbeef00000004"}, "EINVAL"},
	{"renameat2 whiteout|noreplace", "", 316, []string{"-100", "s:/tmp/f", "-100", "s:/tmp/f2", "5"}, "EINVAL"},
	{"renameat2 noreplace", "", 316, []string{"-100", "s:/tmp/o2", "-100", "s:/tmp/o9", "1"}, "ok"},
	{"ioctl FSSETXATTR", "", 16, []string{"fd:/tmp/f", "0x401c5820", "buf:64"}, "EPERM"},
	{"ioctl FSSETXATTR garbage", "", 16, []string{"fd:/tmp/f", "0xdeadbeef401c5820", "buf:64"}, "EPERM"},
	{"ioctl FSSETXATTR garbage sign", "", 16, []string{"fd:/tmp/f", "0xffffffff401c5820", "buf:64"}, "EPERM"},
	{"ioctl FSGETXATTR allowed", "", 16, []string{"fd:/tmp/f", "0x801c581f", "buf:64"}, "not EPERM"},
	{"ioctl TIOCSTI", "", 16, []string{"fd:/tmp/f", "0xdeadbeef00005412", "buf:8"}, "EPERM"},
	{"ioctl TIOCSETD", "", 16, []string{"fd:/tmp/f", "0x5423", "buf:8"}, "EPERM"},
	{"ioctl TCGETS", "", 16, []string{"fd:/tmp/f", "0x5401", "buf:64"}, "ENOTTY"},
	{"ioctl FIONBIO", "", 16, []string{"fd:/tmp/f", "0x5421", "buf:64"}, "ok"},
	{"ioctl FIOCLEX", "", 16, []string{"fd:/tmp/f", "0x5451", "0"}, "ok"},
	{"prctl PR_SCHED_CORE", "", 157, []string{"62", "1", "0", "0"}, "EPERM"},
	{"prctl PR_SCHED_CORE garbage", "", 157, []string{"0xdeadbeef0000003e", "1", "0", "0"}, "EPERM"},
	{"prctl GET_DUMPABLE", "", 157, []string{"3"}, "ok"},
	{"socket VSOCK", "", 41, []string{"40", "1", "0"}, "EPERM"},
	{"socketpair VSOCK", "", 53, []string{"40", "1", "0", "buf:8"}, "EPERM"},
	{"socket ALG", "", 41, []string{"38", "1", "0"}, "EPERM"},
	{"socketpair ALG", "", 53, []string{"38", "1", "0", "buf:8"}, "EPERM"},
	{"socket PACKET", "", 41, []string{"17", "1", "0"}, "EPERM"},
	{"socketpair PACKET", "", 53, []string{"17", "1", "0", "buf:8"}, "EPERM"},
	{"socket XDP", "", 41, []string{"44", "1", "0"}, "EPERM"},
	{"socketpair XDP", "", 53, []string{"44", "1", "0", "buf:8"}, "EPERM"},
	{"socket BT", "", 41, []string{"31", "1", "0"}, "EPERM"},
	{"socketpair BT", "", 53, []string{"31", "1", "0", "buf:8"}, "EPERM"},
	{"socket TIPC", "", 41, []string{"30", "1", "0"}, "EPERM"},
	{"socketpair TIPC", "", 53, []string{"30", "1", "0", "buf:8"}, "EPERM"},
	{"socket CAN", "", 41, []string{"29", "1", "0"}, "EPERM"},
	{"socketpair CAN", "", 53, []string{"29", "1", "0", "buf:8"}, "EPERM"},
	{"socket KEY", "", 41, []string{"15", "1", "0"}, "EPERM"},
	{"socketpair KEY", "", 53, []string{"15", "1", "0", "buf:8"}, "EPERM"},
	{"socket UNSPEC", "", 41, []string{"0", "1", "0"}, "EPERM"},
	{"socketpair UNSPEC", "", 53, []string{"0", "1", "0", "buf:8"}, "EPERM"},
	{"socket BRIDGE", "", 41, []string{"7", "1", "0"}, "EPERM"},
	{"socketpair BRIDGE", "", 53, []string{"7", "1", "0", "buf:8"}, "EPERM"},
	{"socket RDS", "", 41, []string{"21", "1", "0"}, "EPERM"},
	{"socketpair RDS", "", 53, []string{"21", "1", "0", "buf:8"}, "EPERM"},
	{"socket SMC", "", 41, []string{"43", "1", "0"}, "EPERM"},
	{"socketpair SMC", "", 53, []string{"43", "1", "0", "buf:8"}, "EPERM"},
	{"socket QIPCRTR", "", 41, []string{"42", "1", "0"}, "EPERM"},
	{"socketpair QIPCRTR", "", 53, []string{"42", "1", "0", "buf:8"}, "EPERM"},
	{"socket NFC", "", 41, []string{"39", "1", "0"}, "EPERM"},
	{"socketpair NFC", "", 53, []string{"39", "1", "0", "buf:8"}, "EPERM"},
	{"socket MCTP", "", 41, []string{"45", "1", "0"}, "EPERM"},
	{"socketpair MCTP", "", 53, []string{"45", "1", "0", "buf:8"}, "EPERM"},
	{"socket UNIX", "", 41, []string{"1", "1", "0"}, "ok"},
	{"socket UNIX seqpacket", "", 41, []string{"1", "5", "0"}, "ok"},
	{"socket INET", "", 41, []string{"2", "1", "0"}, "ok"},
	{"socket INET dgram cloexec", "", 41, []string{"2", "0x80802", "0"}, "ok"},
	{"socket INET6", "", 41, []string{"10", "1", "6"}, "ok"},
	{"socket INET raw", "", 41, []string{"2", "3", "1"}, "EPERM"},
	{"socket INET mptcp", "", 41, []string{"2", "1", "262"}, "EPERM"},
	{"socket INET sctp", "", 41, []string{"2", "1", "132"}, "EPERM"},
	{"socket INET seqpacket sctp", "", 41, []string{"2", "5", "132"}, "EPERM"},
	{"socket NETLINK route", "", 41, []string{"16", "3", "0"}, "ok"},
	{"socket NETLINK kobject", "", 41, []string{"16", "3", "15"}, "EPERM"},
	{"socket NETLINK netfilter", "", 41, []string{"16", "3", "0xc"}, "EPERM"},
	{"socket NETLINK route garbage proto", "", 41, []string{"16", "3", "0xdeadbeef00000000"}, "EPERM"},
	{"socket VSOCK garbage", "", 41, []string{"0xdeadbeef00000028", "1", "0"}, "EPERM"},
	{"socket UNIX garbage", "", 41, []string{"0xdeadbeef00000001", "1", "0"}, "EPERM"},
	{"socketpair UNIX", "", 53, []string{"1", "1", "0", "buf:8"}, "ok"},
	{"socketpair INET", "", 53, []string{"2", "1", "0", "buf:8"}, "EPERM"},
	{"clone NEWUSER", "", 56, []string{"0x10000011", "0", "0", "0", "0"}, "EPERM"},
	{"clone NEWUSER garbage", "", 56, []string{"0xdeadbeef10000011", "0", "0", "0", "0"}, "EPERM"},
	{"clone NEWNET", "", 56, []string{"0x40000011", "0"}, "EPERM"},
	{"clone NEWNS", "", 56, []string{"0x20011", "0"}, "EPERM"},
	{"clone3", "", 435, []string{"buf:88", "88"}, "ENOSYS"},
	{"unshare USER", "", 272, []string{"0x10000000"}, "EPERM"},
	{"setns", "", 308, []string{"3", "0"}, "EPERM"},
	{"mount", "", 165, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"umount2", "", 166, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"pivot_root", "", 155, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"fsopen", "", 430, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"fsmount", "", 432, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"fsconfig", "", 431, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"fspick", "", 433, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"open_tree", "", 428, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"move_mount", "", 429, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"mount_setattr", "", 442, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"chroot", "", 161, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"ptrace", "", 101, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"process_vm_readv", "", 310, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"process_vm_writev", "", 311, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"add_key", "", 248, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"request_key", "", 249, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"keyctl", "", 250, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"bpf", "", 321, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"perf_event_open", "", 298, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"userfaultfd", "", 323, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"kcmp", "", 312, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"pidfd_getfd", "", 438, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"io_uring_setup", "", 425, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"io_uring_enter", "", 426, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"io_uring_register", "", 427, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"open_by_handle_at", "", 304, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"init_module", "", 175, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"finit_module", "", 313, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"delete_module", "", 176, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"kexec_load", "", 246, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"kexec_file_load", "", 320, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"reboot", "", 169, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"swapon", "", 167, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"swapoff", "", 168, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"acct", "", 163, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"quotactl", "", 179, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"quotactl_fd", "", 443, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"settimeofday", "", 164, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"clock_settime", "", 227, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"syslog", "", 103, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"iopl", "", 172, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"ioperm", "", 173, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"sethostname", "", 170, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"setdomainname", "", 171, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"lookup_dcookie", "", 212, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"fanotify_init", "", 300, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"mbind", "", 237, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"set_mempolicy", "", 238, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"get_mempolicy", "", 239, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"move_pages", "", 279, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"migrate_pages", "", 256, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"vhangup", "", 153, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"nfsservctl", "", 180, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"_sysctl", "", 156, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"uselib", "", 134, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"ustat", "", 136, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"sysfs", "", 139, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"modify_ldt", "", 154, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"process_madvise", "", 440, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"io_submit", "", 209, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"create_module", "", 174, []string{"0", "0", "0", "0", "0", "0"}, "EPERM"},
	{"io_setup", "", 206, []string{"1", "buf:8"}, "ENOSYS"},
	{"file_setattr", "", 469, []string{"-100", "s:/tmp/f", "buf:64", "64", "0"}, "ENOSYS"},
	{"open_tree_attr 467", "", 467, []string{"0", "0", "0", "0"}, "ENOSYS"},
	{"listns 470", "", 470, []string{"0", "0", "0", "0"}, "ENOSYS"},
	{"nr 500", "", 500, []string{}, "ENOSYS"},
	{"personality query", "", 135, []string{"0xffffffff"}, "ok"},
	{"personality NO_RANDOMIZE", "", 135, []string{"0x40000"}, "EPERM"},
	{"personality READ_IMPLIES_EXEC", "", 135, []string{"0x400000"}, "EPERM"},
	{"personality garbage", "", 135, []string{"0xdeadbeef00040000"}, "EPERM"},
	{"i386 getpid", "i386", 20, []string{}, "killed"},
	{"i386 socketcall", "i386", 102, []string{"1", "0"}, "killed"},
	{"i386 socket vsock", "i386", 359, []string{"40", "1", "0"}, "killed"},
	{"i386 chmod", "i386", 15, []string{"0", "0x9ed"}, "killed"},
	{"x32 getpid", "x32", 39, []string{}, "killed or denied"},
	{"x32 chmod", "x32", 90, []string{"s:/tmp/f", "0x9ed"}, "killed or denied"},
	{"x32 io_uring", "x32", 425, []string{"1", "buf:120"}, "killed or denied"},
	{"x32 socket", "x32", 41, []string{"40", "1", "0"}, "killed or denied"},
	{"nr garbage upper", "", 0xdeadbeef000001a9, []string{"1", "buf:120"}, "EPERM"},
}

func TestSeccompRulesHoldInARealJob(t *testing.T) {
	r := openRoom(t, nil, nil)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "syscalls"), "./testdata/syscalls")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	type call struct {
		ABI  string
		NR   uint64
		Args []string
	}
	var calls []call
	for _, p := range seccompProbes {
		calls = append(calls, call{p.abi, p.nr, p.args})
	}
	text, err := json.Marshal(calls)
	mustDo(t, err, os.WriteFile(filepath.Join(dir, "calls.json"), text, 0o644), os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
	req := r.request()
	req.Posture.MilliCPUs, req.Posture.Pids = 1000, 200
	req.Binds = []sandbox.Bind{{Source: dir, Target: sandbox.PathWorkspace}}
	sl := r.fill(t, req)
	command(t, sl, req.Posture, "echo > /tmp/f && exec /workspace/syscalls /workspace/calls.json")
	out, ex := follow(t, sl)
	var answers []struct {
		Errno  int
		Killed string
	}
	if err := json.Unmarshal([]byte(out), &answers); err != nil || len(answers) != len(calls) {
		t.Fatalf("%v %+v: %q", err, ex, out)
	}
	for i, p := range seccompProbes {
		got := "ok"
		if answers[i].Killed != "" {
			got = "killed"
		} else if e := answers[i].Errno; e != 0 {
			got = unix.ErrnoName(unix.Errno(e))
		}
		right := got == p.want
		switch p.want {
		case "not EPERM":
			right = got != "EPERM" && got != "killed"
		case "killed or denied":
			right = got == "killed" || got == "ENOSYS" || got == "EPERM"
		}
		if !right {
			t.Errorf("%s: got %s, want %s", p.name, got, p.want)
		}
	}
}
