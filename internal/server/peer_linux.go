package server

import (
	"errors"
	"math"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

var errNoPeer = errors.New("the kernel does not know the peer's user")

// peerCredentials are those of the process that connected, as they were at connect.
func peerCredentials(c *net.UnixConn) (cred *unix.Ucred, groups []uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	ctlErr := raw.Control(func(fd uintptr) {
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
			return
		}
		groups, err = peerGroups(fd)
	})
	switch {
	case ctlErr != nil:
		return nil, nil, ctlErr
	case err != nil:
		return nil, nil, err
	case cred.Uid == math.MaxUint32 || cred.Gid == math.MaxUint32:
		return nil, nil, errNoPeer
	}
	return cred, groups, nil
}

// peerGroups reads SO_PEERGROUPS, for which x/sys has no function. The kernel tells the size needed with ERANGE; a
// process has at most 65536 groups, and its set is fixed at connect.
func peerGroups(fd uintptr) ([]uint32, error) {
	for n := 64; ; {
		groups := make([]uint32, n)
		size := uint32(n * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4], nil
		case errno == unix.ERANGE && int(size/4) > n:
			n = int(size / 4)
		default:
			return nil, errno
		}
	}
}
