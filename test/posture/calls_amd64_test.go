package posture_test

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// plainCalls are the rows that are one system call each, with what it must give. The arguments are such that the call
// would work, or fail another way, were it let through.
var plainCalls = map[int][]call{
	5: {
		{"setuid(0)", "", unix.SYS_SETUID, args("0"), safe("EPERM")},
		{"setreuid(0,0)", "", unix.SYS_SETREUID, args("0", "0"), safe("EPERM")},
		{"setresuid(0,0,0)", "", unix.SYS_SETRESUID, args("0", "0", "0"), safe("EPERM")},
		{"setgid(0)", "", unix.SYS_SETGID, args("0"), safe("EPERM")},
		{"setresgid(0,0,0)", "", unix.SYS_SETRESGID, args("0", "0", "0"), safe("EPERM")},
		{"setgroups(1,{0})", "", unix.SYS_SETGROUPS, args("1", "u32:0"), safe("EPERM")},
		{"capset(all)", "", unix.SYS_CAPSET, args("u32:0x20080522,0", "u32:0xffffffff,0xffffffff,0,0xffffffff,0xffffffff,0"), safe("EPERM")},
		{"prctl(CAP_AMBIENT_RAISE, SYS_ADMIN)", "", unix.SYS_PRCTL, args("47", "2", "21", "0", "0"), safe("EPERM")},
		{"prctl(SET_SECUREBITS)", "", unix.SYS_PRCTL, args("28", "0"), safe("EPERM")},
		{"chroot", "", unix.SYS_CHROOT, args("s:/tmp"), safe("EPERM")},
	},
	6: {
		{"unshare(NEWUSER)", "", unix.SYS_UNSHARE, args("0x10000000"), safe("EPERM")},
		{"unshare(NEWNS)", "", unix.SYS_UNSHARE, args("0x00020000"), safe("EPERM")},
		{"unshare(NEWNET)", "", unix.SYS_UNSHARE, args("0x40000000"), safe("EPERM")},
		{"unshare(NEWTIME)", "", unix.SYS_UNSHARE, args("0x80"), safe("EPERM")},
		{"clone(NEWUSER)", "", unix.SYS_CLONE, args("0x10000011", "0", "0", "0", "0"), safe("EPERM")},
		{"clone(NEWUSER with upper bits)", "", unix.SYS_CLONE, args("0x110000011", "0", "0", "0", "0"), safe("EPERM")},
		{"clone(NEWPID)", "", unix.SYS_CLONE, args("0x20000011", "0", "0", "0", "0"), safe("EPERM")},
		{"clone3(NEWUSER)", "", unix.SYS_CLONE3, args("u64:0x10000000,0,0,0,17,0,0,0", "64"), safe("ENOSYS")},
		{"clone3 plain", "", unix.SYS_CLONE3, args("u64:0,0,0,0,17,0,0,0", "64"), safe("ENOSYS")},
		{"setns", "", unix.SYS_SETNS, args("fd:/tmp/x", "0"), safe("EPERM")},
	},
	7: {
		{"mount tmpfs", "", unix.SYS_MOUNT, args("s:tmpfs", "s:/tmp", "s:tmpfs", "0", "0"), safe("EPERM")},
		{"mount remount,rw /", "", unix.SYS_MOUNT, args("s:none", "s:/", "0", "0x20", "0"), safe("EPERM")},
		{"umount2 /proc/keys", "", unix.SYS_UMOUNT2, args("s:/proc/keys", "2"), safe("EPERM")},
		{"fsopen tmpfs", "", unix.SYS_FSOPEN, args("s:tmpfs", "0"), safe("EPERM")},
		{"open_tree(CLONE)", "", unix.SYS_OPEN_TREE, args("-100", "s:/tmp", "1"), safe("EPERM")},
		{"open_tree", "", unix.SYS_OPEN_TREE, args("-100", "s:/tmp", "0"), safe("EPERM")},
		{"move_mount", "", unix.SYS_MOVE_MOUNT, args("-100", "s:/tmp", "-100", "s:/run", "0"), safe("EPERM")},
		{"fsconfig", "", unix.SYS_FSCONFIG, args("fd:/tmp/x", "6", "0", "0", "0"), safe("EPERM")},
		{"fsmount", "", unix.SYS_FSMOUNT, args("fd:/tmp/x", "0", "0"), safe("EPERM")},
		{"fspick", "", unix.SYS_FSPICK, args("-100", "s:/tmp", "0"), safe("EPERM")},
		{"mount_setattr", "", unix.SYS_MOUNT_SETATTR, args("-100", "s:/", "0", "u64:0,1,0,0", "32"), safe("EPERM")},
		{"open_tree_attr", "", 467, args("-100", "s:/tmp", "1", "u64:0,1,0,0", "32"), safe("EPERM", "ENOSYS")}, // newer than some hosts' libseccomp
		{"pivot_root", "", unix.SYS_PIVOT_ROOT, args("s:/tmp", "s:/tmp"), safe("EPERM")},
	},
	8: {
		{"mount cgroup", "", unix.SYS_MOUNT, args("s:cgroup", "s:/tmp", "s:cgroup", "0", "s:rdma"), safe("EPERM")},
		{"mount cgroup2", "", unix.SYS_MOUNT, args("s:cgroup2", "s:/tmp", "s:cgroup2", "0", "0"), safe("EPERM")},
	},
	10: {
		{"mknod block", "", unix.SYS_MKNOD, args("s:/tmp/sda", "0o060666", "0x800"), safe("EPERM")},
		{"mknodat block", "", unix.SYS_MKNODAT, args("-100", "s:/tmp/sda", "0o060666", "0x800"), safe("EPERM")},
		{"mknodat block with upper bits", "", unix.SYS_MKNODAT, args("-100", "s:/tmp/sda", "0x1000061b6", "0x800"), safe("EPERM")},
		{"mknodat character", "", unix.SYS_MKNODAT, args("-100", "s:/tmp/sda", "0o020666", "0x101"), safe("EPERM")},
	},
	11: {
		{"open_by_handle_at", "", unix.SYS_OPEN_BY_HANDLE_AT, args("dir:/etc", "u32:8,1,2,0", "0"), safe("EPERM")},
	},
	12: {
		{"io_uring_setup", "", unix.SYS_IO_URING_SETUP, args("1", "buf:120"), safe("EPERM")},
		{"io_uring_enter", "", unix.SYS_IO_URING_ENTER, args("0", "0", "0", "0", "0", "0"), safe("EPERM")},
		{"io_uring_register", "", unix.SYS_IO_URING_REGISTER, args("0", "0", "0", "0"), safe("EPERM")},
		{"io_setup", "", unix.SYS_IO_SETUP, args("1", "buf:8"), safe("ENOSYS")},
	},
	13: {
		{"socket(AF_VSOCK)", "", unix.SYS_SOCKET, args("40", "1", "0"), safe("EPERM")},
		{"i386 socketcall(socket, AF_VSOCK)", "i386", 102, args("1", "0", "0"), safe("killed")},
		{"i386 socket(AF_VSOCK)", "i386", 359, args("40", "1", "0"), safe("killed")},
		{"i386 getpid", "i386", 20, args(), safe("killed")},
		{"x32 socket(AF_VSOCK)", "x32", unix.SYS_SOCKET, args("40", "1", "0"), safe("killed")},
		{"x32 getpid", "x32", unix.SYS_GETPID, args(), safe("killed")},
	},
	14: {
		{"socket(AF_ALG)", "", unix.SYS_SOCKET, args("38", "5", "0"), safe("EPERM")},
		{"i386 socket(AF_ALG)", "i386", 359, args("38", "5", "0"), safe("killed")},
	},
	15: {
		{"socket(AF_PACKET)", "", unix.SYS_SOCKET, args("17", "3", "0x300"), safe("EPERM")},
		{"socket(INET, RAW)", "", unix.SYS_SOCKET, args("2", "3", "1"), safe("EPERM")},
		{"socket(INET6, RAW)", "", unix.SYS_SOCKET, args("10", "3", "58"), safe("EPERM")},
		{"socket(INET, RAW|CLOEXEC, RAW)", "", unix.SYS_SOCKET, args("2", "0x80003", "255"), safe("EPERM")},
		{"socket(INET, SCTP)", "", unix.SYS_SOCKET, args("2", "1", "132"), safe("EPERM")},
		{"socket(INET, MPTCP)", "", unix.SYS_SOCKET, args("2", "1", "262"), safe("EPERM")},
		{"socket(INET with upper bits, RAW)", "", unix.SYS_SOCKET, args("0x100000002", "3", "1"), safe("EPERM")},
		{"socket(AF_XDP)", "", unix.SYS_SOCKET, args("44", "3", "0"), safe("EPERM")},
		{"socket(AF_BLUETOOTH)", "", unix.SYS_SOCKET, args("31", "3", "1"), safe("EPERM")},
		{"socket(AF_TIPC)", "", unix.SYS_SOCKET, args("30", "1", "0"), safe("EPERM")},
		{"socket(AF_CAN)", "", unix.SYS_SOCKET, args("29", "3", "1"), safe("EPERM")},
		{"socket(AF_KEY)", "", unix.SYS_SOCKET, args("15", "3", "2"), safe("EPERM")},
		{"socket(AF_SMC)", "", unix.SYS_SOCKET, args("43", "1", "0"), safe("EPERM")},
		{"socket(AF_QIPCRTR)", "", unix.SYS_SOCKET, args("42", "2", "0"), safe("EPERM")},
		{"socket(NETLINK, AUDIT)", "", unix.SYS_SOCKET, args("16", "3", "9"), safe("EPERM")},
		{"socket(NETLINK, NETFILTER)", "", unix.SYS_SOCKET, args("16", "3", "12"), safe("EPERM")},
		{"socket(NETLINK, KOBJECT_UEVENT)", "", unix.SYS_SOCKET, args("16", "2", "15"), safe("EPERM")},
		{"socket(NETLINK, CRYPTO)", "", unix.SYS_SOCKET, args("16", "3", "21"), safe("EPERM")},
		{"socketpair(INET)", "", unix.SYS_SOCKETPAIR, args("2", "1", "0", "buf:8"), safe("EPERM")},
	},
	16: {
		{"keyctl(GET_KEYRING_ID)", "", unix.SYS_KEYCTL, args("0", "-4", "1"), safe("EPERM")},
		{"add_key", "", unix.SYS_ADD_KEY, args("s:user", "s:k", "s:v", "1", "-3"), safe("EPERM")},
		{"request_key", "", unix.SYS_REQUEST_KEY, args("s:user", "s:k", "0", "-3"), safe("EPERM")},
	},
	17: {
		{"bpf(MAP_CREATE)", "", unix.SYS_BPF, args("0", "u32:2,4,4,1", "16"), safe("EPERM")},
		{"perf_event_open", "", unix.SYS_PERF_EVENT_OPEN, args("u32:1,128", "0", "-1", "-1", "0"), safe("EPERM")},
		{"userfaultfd", "", unix.SYS_USERFAULTFD, args("1"), safe("EPERM")},
		{"kcmp", "", unix.SYS_KCMP, args("1", "1", "0", "0", "0"), safe("EPERM")},
		{"pidfd_getfd", "", unix.SYS_PIDFD_GETFD, args("0", "0", "0"), safe("EPERM")},
		{"process_madvise", "", unix.SYS_PROCESS_MADVISE, args("0", "0", "0", "4", "0"), safe("EPERM", "EBADF")},
		{"fanotify_init", "", unix.SYS_FANOTIFY_INIT, args("0x200", "0"), safe("EPERM")},
		{"lookup_dcookie", "", unix.SYS_LOOKUP_DCOOKIE, args("0", "0", "0"), safe("EPERM")},
		{"move_pages of init", "", unix.SYS_MOVE_PAGES, args("1", "0", "0", "0", "0", "0"), safe("EPERM")},
	},
	18: {
		{"ptrace(TRACEME)", "", unix.SYS_PTRACE, args("0", "0", "0", "0"), safe("EPERM")},
		{"ptrace(SEIZE, 1)", "", unix.SYS_PTRACE, args("0x4206", "1", "0", "0"), safe("EPERM")},
		{"process_vm_readv", "", unix.SYS_PROCESS_VM_READV, args("1", "0", "0", "0", "0", "0"), safe("EPERM")},
		{"process_vm_writev", "", unix.SYS_PROCESS_VM_WRITEV, args("1", "0", "0", "0", "0", "0"), safe("EPERM")},
	},
	19: {
		{"init_module", "", unix.SYS_INIT_MODULE, args("buf:8", "8", "s:"), safe("EPERM")},
		{"finit_module", "", unix.SYS_FINIT_MODULE, args("0", "s:", "0"), safe("EPERM")},
		{"delete_module", "", unix.SYS_DELETE_MODULE, args("s:x", "0"), safe("EPERM")},
		{"kexec_load", "", unix.SYS_KEXEC_LOAD, args("0", "0", "0", "0"), safe("EPERM")},
		{"kexec_file_load", "", unix.SYS_KEXEC_FILE_LOAD, args("-1", "-1", "0", "0", "0"), safe("EPERM")},
		{"reboot", "", unix.SYS_REBOOT, args("0", "0", "0", "0"), safe("EPERM")}, // wrong magic: harmless
		{"swapon", "", unix.SYS_SWAPON, args("s:/tmp/x", "0"), safe("EPERM")},
		{"swapoff", "", unix.SYS_SWAPOFF, args("s:/tmp/x"), safe("EPERM")},
		{"acct", "", unix.SYS_ACCT, args("s:/tmp/x"), safe("EPERM")},
		{"quotactl", "", unix.SYS_QUOTACTL, args("0x800001", "0", "0", "0"), safe("EPERM")},
		{"quotactl_fd", "", unix.SYS_QUOTACTL_FD, args("0", "0x800001", "0", "0"), safe("EPERM")},
		{"iopl", "", unix.SYS_IOPL, args("3"), safe("EPERM")},
		{"ioperm", "", unix.SYS_IOPERM, args("0", "1", "1"), safe("EPERM")},
		{"sethostname", "", unix.SYS_SETHOSTNAME, args("s:x", "1"), safe("EPERM")},
		{"setdomainname", "", unix.SYS_SETDOMAINNAME, args("s:x", "1"), safe("EPERM")},
		{"vhangup", "", unix.SYS_VHANGUP, args(), safe("EPERM")},
	},
	20: {
		{"clock_settime", "", unix.SYS_CLOCK_SETTIME, args("0", "u64:1,0"), safe("EPERM")},
		{"settimeofday", "", unix.SYS_SETTIMEOFDAY, args("u64:1,0", "0"), safe("EPERM")},
		{"clock_adjtime", "", unix.SYS_CLOCK_ADJTIME, args("0", "u32:1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"), safe("EPERM")},
	},
	21: {
		{"sched_setscheduler(FIFO)", "", unix.SYS_SCHED_SETSCHEDULER, args("0", "1", "u32:1"), safe("EPERM")},
		{"sched_setscheduler(RR)", "", unix.SYS_SCHED_SETSCHEDULER, args("0", "2", "u32:1"), safe("EPERM")},
		{"sched_setattr(DEADLINE)", "", unix.SYS_SCHED_SETATTR, args("0", "u64:0x600000030,0,0,10000000,20000000,20000000", "0"), safe("EPERM")},
		{"setpriority(-5)", "", unix.SYS_SETPRIORITY, args("0", "0", "-5"), safe("EACCES", "EPERM")},
		{"ioprio_set(RT)", "", unix.SYS_IOPRIO_SET, args("1", "0", "0x2000"), safe("EPERM")},
		{"mlockall", "", unix.SYS_MLOCKALL, args("1"), safe("ENOMEM", "EPERM")},
		{"prctl(SCHED_CORE)", "", unix.SYS_PRCTL, args("62", "1", "0", "0", "0"), safe("EPERM")},
		{"prctl(SCHED_CORE with upper bits)", "", unix.SYS_PRCTL, args("0x10000003e", "1", "0", "0", "0"), safe("EPERM")},
	},
	24: {
		{"syslog(READ_ALL)", "", unix.SYS_SYSLOG, args("3", "buf:512", "512"), safe("EPERM")},
		{"syslog(CLEAR)", "", unix.SYS_SYSLOG, args("5", "0", "0"), safe("EPERM")},
	},
	94: append([]call{
		{"ioctl(FSSETXATTR)", "", unix.SYS_IOCTL, args("fd:/tmp/x", "0x401c5820", "buf:28"), safe("EPERM")},
		{"ioctl(FSSETXATTR with upper bits)", "", unix.SYS_IOCTL, args("fd:/tmp/x", "0x1401c5820", "buf:28"), safe("EPERM")},
		{"ioctl(TIOCSTI)", "", unix.SYS_IOCTL, args("0", "0x5412", "s:x"), safe("EPERM")},
		{"file_setattr", "", 469, args("-100", "s:/tmp/x", "u64:0,0,0", "24", "0"), safe("ENOSYS")},
		{"fchmodat2 04755", "", 452, args("-100", "s:/tmp/x", "0o4755", "0"), safe("ENOSYS")},
		{"openat2", "", unix.SYS_OPENAT2, args("-100", "s:/tmp/x", "u64:0,0,0", "24"), safe("ENOSYS")},
		{"rename with a whiteout", "", unix.SYS_RENAMEAT2, args("-100", "s:/tmp/x", "-100", "s:/tmp/y", "4"), safe("EINVAL")},
	}, setidCalls()...),
	// What a job needs must be let through; else a wall that refuses everything would pass the rows above.
	0: {
		{"getpid", "", unix.SYS_GETPID, args(), safe("OK")},
		{"socket(INET, STREAM)", "", unix.SYS_SOCKET, args("2", "0x80001", "0"), safe("OK")},
		{"socket(INET6, DGRAM)", "", unix.SYS_SOCKET, args("10", "2", "17"), safe("OK")},
		{"socket(UNIX)", "", unix.SYS_SOCKET, args("1", "1", "0"), safe("OK")},
		{"socket(NETLINK, ROUTE)", "", unix.SYS_SOCKET, args("16", "3", "0"), safe("OK")},
		{"socketpair(UNIX)", "", unix.SYS_SOCKETPAIR, args("1", "1", "0", "buf:8"), safe("OK")},
		{"open with set-id garbage, not creating", "", unix.SYS_OPEN, args("s:/etc/passwd", "0", "0o6755"), safe("OK")},
		{"open creating", "", unix.SYS_OPEN, args("s:/tmp/made", "0o101", "0o755"), safe("OK")},
		{"chmod 0755", "", unix.SYS_CHMOD, args("s:/home/job", "0o755"), safe("OK")},
		{"mkfifo", "", unix.SYS_MKNODAT, args("-100", "s:/tmp/a-fifo", "0o010600", "0"), safe("OK")},
		{"rename", "", unix.SYS_RENAMEAT2, args("-100", "s:/tmp/made", "-100", "s:/tmp/moved", "0"), safe("OK")},
		{"personality(ask)", "", unix.SYS_PERSONALITY, args("0xffffffff"), safe("OK")},
		{"memfd_create", "", unix.SYS_MEMFD_CREATE, args("s:x", "0"), safe("OK")},
		{"clone", "", unix.SYS_CLONE, args("17", "0", "0", "0", "0"), safe("OK")},
		{"inotify_init1", "", unix.SYS_INOTIFY_INIT1, args("0"), safe("OK")},
		{"sched_setscheduler(BATCH)", "", unix.SYS_SCHED_SETSCHEDULER, args("0", "3", "u32:0"), safe("OK")},
	},
}

// setidCalls are the ways to a set-id bit with garbage in the bits that the kernel does not look at.
func setidCalls() []call {
	var out []call
	for _, mode := range []string{"0o4755", "0o2755", "0x1000009ed", "0x10000000000009ed", "0o104755"} {
		add := func(name string, nr uint64, a ...string) {
			out = append(out, call{fmt.Sprintf("%s %s", name, mode), "", nr, a, []string{"EPERM"}})
		}
		add("chmod", unix.SYS_CHMOD, "s:/tmp/x", mode)
		add("fchmod", unix.SYS_FCHMOD, "fd:/tmp/x", mode)
		add("fchmodat", unix.SYS_FCHMODAT, "-100", "s:/tmp/x", mode)
		add("creat", unix.SYS_CREAT, "s:/tmp/new", mode)
		add("open", unix.SYS_OPEN, "s:/tmp/new", "0o101", mode)
		add("open with garbage in the flags", unix.SYS_OPEN, "s:/tmp/new", "0x100000041", mode)
		add("openat", unix.SYS_OPENAT, "-100", "s:/tmp/new", "0o101", mode)
		add("openat O_TMPFILE", unix.SYS_OPENAT, "-100", "s:/tmp", "0o20200001", mode)
		add("mknod", unix.SYS_MKNOD, "s:/tmp/new", mode, "0")
		add("mknodat", unix.SYS_MKNODAT, "-100", "s:/tmp/new", mode, "0")
	}
	return out
}
