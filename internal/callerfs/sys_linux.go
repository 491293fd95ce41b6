package callerfs

import (
	"fmt"
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

// allowedFS are the file systems paths may lie on, by the magic of statfs(2): ones that answer, and whose files stay
// what they are.
var allowedFS = map[int64]string{
	0xef53:     "ext4",
	0x58465342: "xfs",
	0x9123683e: "btrfs",
	0xf2f52010: "f2fs",
	0x01021994: "tmpfs",
	0x794c7630: "overlayfs",
}

func fileSystem(f *File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("statfs %q: %w", f.Path, err)
	}
	if _, ok := allowedFS[int64(st.Type)]; !ok {
		return &Refusal{f.Path, fmt.Sprintf("lies on a file system (type %#x) that is not given to jobs; ext4, xfs, btrfs, f2fs, tmpfs and overlayfs are", st.Type)}
	}
	return nil
}
