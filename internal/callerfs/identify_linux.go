package callerfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// allowedFS are the file systems that paths may lie on: ones that answer, and whose files stay what they are.
var allowedFS = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs", "overlay"}

// identify learns from a descriptor itself what it is; the name it was asked by may mean something else by now. Until
// the file system is known to be one that answers, only the kernel's own lists are read: stat and statfs would ask it.
// The descriptor becomes the File's, or is closed.
func identify(fd int, asked string) (*File, error) {
	path, err := os.Readlink(descriptor(fd))
	if err != nil {
		path = asked
	}
	f := &File{File: os.NewFile(uintptr(fd), path), Path: path}
	if err == nil {
		err = f.look(fd)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("looking at %q: %w", asked, err)
	}
	return f, nil
}

func (f *File) look(fd int) error {
	kind, err := fileSystem(fd)
	if err != nil {
		return err
	}
	if !slices.Contains(allowedFS, kind) {
		return &Refusal{f.Path, fmt.Sprintf("lies on a file system (%s) that is not given to jobs; %s are", kind, strings.Join(allowedFS, ", "))}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	f.Owner, f.Mode, f.Dir = st.Uid, st.Mode&0o7777, st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case st.Nlink == 0:
		return &Refusal{f.Path, "was deleted"}
	case !f.Dir && st.Mode&unix.S_IFMT != unix.S_IFREG:
		return &Refusal{f.Path, "is neither a directory nor a regular file"}
	}
	return nil
}

func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

var errUnseen = errors.New("its mount is not in this mount namespace")

// fileSystem returns the type of a descriptor's file system without a question to that file system.
func fileSystem(fd int) (string, error) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return "", err
	}
	_, rest, found := bytes.Cut(info, []byte("mnt_id:"))
	if !found {
		return "", errors.New("the kernel names no mount for a descriptor; 3.15 is needed")
	}
	id, _, _ := bytes.Cut(rest, []byte("\n"))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return typeOf(string(mounts), string(bytes.TrimSpace(id)))
}

// typeOf finds a mount in the text of mountinfo: its id stands first, its type behind a lone dash.
func typeOf(mountinfo, id string) (string, error) {
	for line := range strings.Lines(mountinfo) {
		if !strings.HasPrefix(line, id+" ") {
			continue
		}
		if _, after, found := strings.Cut(line, " - "); found {
			kind, _, _ := strings.Cut(after, " ")
			return kind, nil
		}
	}
	return "", errUnseen
}
