package callerfs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// setgroups sets the supplementary groups of this thread alone; the library's own sets them for all.
func setgroups(groups []int) error {
	list := make([]uint32, len(groups)+1)
	for i, g := range groups {
		list[i] = uint32(g)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&list[0])), 0); e != 0 {
		return e
	}
	return nil
}
