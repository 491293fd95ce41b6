package supervise

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// probe tries system calls that the container's filter must refuse, and returns the errno of each: 0 or an errno of the
// call's own (EFAULT, EINVAL, ENOENT, EAFNOSUPPORT) means that the filter let it through. None of them has an effect
// when it works: what it opens is closed, and the file of chmod does not exist.
func probe() map[string]int {
	return map[string]int{
		wire.ProbeIOUring: opened(ioUringSetup()),
		wire.ProbeVsock:   opened(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)),
		// EINVAL when let through: this process has threads.
		wire.ProbeUnshareUser: number(unix.Unshare(unix.CLONE_NEWUSER)),
		wire.ProbeOpenat2: opened(unix.Openat2(unix.AT_FDCWD, "/",
			&unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})),
		wire.ProbeSetuidBit: number(unix.Fchmodat(unix.AT_FDCWD, "/sandboxd-probe/none", 0o4700, 0)),
	}
}

func ioUringSetup() (int, error) {
	params := new([120]byte) // struct io_uring_params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(params)), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func opened(fd int, err error) int {
	if err == nil {
		_ = unix.Close(fd)
	}
	return number(err)
}

func number(err error) int {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return int(errno)
	}
	return 0
}
