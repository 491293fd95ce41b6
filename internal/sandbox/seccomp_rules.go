package sandbox

// Numbers of the kernel's interface that this file speaks of. They are the same on amd64 and arm64.
const (
	errnoEPERM  = 1
	errnoEINVAL = 22
	errnoENOSYS = 38

	afUnix, afInet, afInet6, afNetlink            = 1, 2, 10, 16
	sockTypeMask, sockStream, sockDgram           = 0xf, 1, 2
	protoICMP, protoTCP, protoUDP, protoICMPv6    = 1, 6, 17, 58
	setIDBits                                     = 0o6000
	typeMask, typeFIFO, typeRegular, typeSocket   = 0o170000, 0o010000, 0o100000, 0o140000
	openCreates                                   = 0o100 | 0o20000000 // O_CREAT, and O_TMPFILE's own bit
	renameWhiteout                                = 4
	cloneNamespaces                               = 0x7e020000 // all but CLONE_NEWTIME, which clone cannot ask for
	fsIocFssetxattr                               = 0x401c5820
	tiocsti, tioclinux, tiocsetd                  = 0x5412, 0x541c, 0x5423
	prSchedCore                                   = 62
	perLinux, perLinux32, uname26, personalityAsk = 0, 8, 0x20000, 0xffffffff
)

// takenAway are calls that upstream allows and we do not, with the reason. They get the default, EPERM.
var takenAway = map[string]string{
	"ptrace":               "a process of the job could take over another",
	"process_vm_readv":     "as ptrace",
	"process_vm_writev":    "as ptrace",
	"modify_ldt":           "only 16 and 32-bit code needs it, which cannot run here",
	"ipc":                  "multiplexer of another ABI",
	"socketcall":           "multiplexer of another ABI, whose arguments no filter sees",
	"io_submit":            "see io_setup",
	"io_cancel":            "see io_setup",
	"io_destroy":           "see io_setup",
	"io_getevents":         "see io_setup",
	"io_pgetevents":        "see io_setup",
	"io_pgetevents_time64": "see io_setup",
}

// conditionalRules are the calls that depend on their arguments, or on whose errno a program depends.
var conditionalRules = []rule{
	// Programs and libcs fall back on ENOSYS, some do not on EPERM. openat2 and clone3 have their flags behind a
	// pointer. fchmodat2 and file_setattr are newer than the libseccomp of many hosts; there runc gives ENOSYS itself.
	{names: []string{"clone3", "openat2", "fchmodat2", "file_setattr"}, errno: errnoENOSYS},
	// All containers and the host share fs.aio-max-nr; one job could take it all.
	{names: []string{"io_setup"}, errno: errnoENOSYS},

	{names: []string{"clone"}, when: []alternative{{clear(0, cloneNamespaces)}}},
	{names: []string{"personality"}, when: []alternative{
		{equal(0, perLinux)}, {equal(0, perLinux32)}, {equal(0, uname26)}, {equal(0, uname26|perLinux32)},
		{equal(0, personalityAsk)},
	}},

	// Families and protocols: every other one is kernel code that the job could have loaded and run. Netlink is for
	// reading routes and addresses.
	{names: []string{"socket"}, when: append(internet(),
		alternative{equal(0, afUnix)},
		alternative{equal(0, afNetlink), equal(2, 0)},
	)},
	{names: []string{"socketpair"}, when: []alternative{{equal(0, afUnix)}}},

	// No set-id bit: without capabilities a job could still make a setuid file that its caller owns on the host. open
	// looks at its mode only when it creates; otherwise the mode is whatever the register held.
	{names: []string{"chmod", "fchmod", "creat"}, when: []alternative{{clear(1, setIDBits)}}},
	{names: []string{"fchmodat"}, when: []alternative{{clear(2, setIDBits)}}},
	{names: []string{"open"}, when: []alternative{{clear(1, openCreates)}, {clear(2, setIDBits)}}},
	{names: []string{"openat"}, when: []alternative{{clear(2, openCreates)}, {clear(3, setIDBits)}}},

	// No device, not even the whiteout 0:0, which would show on the host; and mknod keeps set-id bits as well.
	{names: []string{"mknod"}, when: nodes(1)},
	{names: []string{"mknodat"}, when: nodes(2)},
	{names: []string{"renameat2"}, when: []alternative{{clear(4, renameWhiteout)}}},
	{names: []string{"renameat2"}, errno: errnoEINVAL, when: []alternative{{masked(4, renameWhiteout, renameWhiteout)}}},

	// FSSETXATTR gives a file another project, so another's disk quota. The terminal ones type into another's
	// terminal, and load line disciplines.
	{names: []string{"ioctl"}, when: noneOf(1, fsIocFssetxattr, tiocsti, tioclinux, tiocsetd)},
	// Of oneself only: the kernel lets equal ids set each other's limits, and RLIMIT_CPU 0 would end init.
	{names: []string{"prlimit64"}, when: []alternative{{equal(0, 0)}}},
	// A core scheduling cookie would keep other jobs and the host off the sibling threads.
	{names: []string{"prctl"}, when: noneOf(0, prSchedCore)},
}

// internet are stream and datagram sockets of the protocols a job has a use for.
func internet() []alternative {
	var out []alternative
	for _, family := range []uint64{afInet, afInet6} {
		for _, kind := range []uint64{sockStream, sockDgram} {
			for _, proto := range []uint64{0, protoICMP, protoTCP, protoUDP, protoICMPv6} {
				out = append(out, alternative{equal(0, family), masked(1, sockTypeMask, kind), equal(2, proto)})
			}
		}
	}
	return out
}

// nodes are the harmless file types; type 0 means regular.
func nodes(arg uint) []alternative {
	var out []alternative
	for _, kind := range []uint64{0, typeRegular, typeFIFO, typeSocket} {
		out = append(out, alternative{masked(arg, typeMask|setIDBits, kind)})
	}
	return out
}
