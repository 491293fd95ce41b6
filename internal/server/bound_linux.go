package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// bound is a unix socket in its place. It appears there with its owner and mode set: nobody can connect earlier, or
// with other rights.
type bound struct {
	path     string
	listener *net.UnixListener
	dir      *socketDir
	dev, ino uint64 // of the socket's file, to tell our own from another at Close

	once     sync.Once
	closeErr error
}

const privateName = "s" // of the socket in its private directory

// publish binds in a private directory, sets owner and mode there, and moves the socket to its place, where it may
// replace another one only if told so.
func (b *bound) publish(gid *uint32, mode fs.FileMode, replace bool) (err error) {
	private, undo, err := b.dir.private()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	b.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: inDir(private, privateName), Net: "unix"})
	if err != nil {
		return fmt.Errorf("binding %s: %w", b.path, err)
	}
	b.listener.SetUnlinkOnClose(false) // Close looks first whose it is
	fd := int(private.Fd())
	if gid != nil {
		if err := unix.Fchownat(fd, privateName, -1, int(*gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("giving %s to group %d: %w", b.path, *gid, err)
		}
	}
	if err := unix.Fchmodat(fd, privateName, uint32(mode), 0); err != nil {
		return fmt.Errorf("setting the mode of %s: %w", b.path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, privateName, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("looking at %s: %w", b.path, err)
	}
	b.dev, b.ino = uint64(st.Dev), st.Ino
	var flags uint
	if !replace { // what appeared meanwhile is not ours to replace
		flags = unix.RENAME_NOREPLACE
	}
	if err := unix.Renameat2(fd, privateName, b.dir.fd(), b.dir.base, flags); err != nil {
		return fmt.Errorf("moving the socket to %s: %w", b.path, err)
	}
	return nil
}

// Addr is the socket's path.
func (b *bound) Addr() net.Addr { return &net.UnixAddr{Name: b.path, Net: "unix"} }

// Close ends the listener and removes the socket's file if it is still ours.
func (b *bound) Close() error {
	b.once.Do(func() {
		if b.listener != nil { // nil where publish failed before it was made
			b.closeErr = errors.Join(b.listener.Close(), b.dir.remove(b.dev, b.ino))
		}
		b.closeErr = errors.Join(b.closeErr, b.dir.close())
	})
	return b.closeErr
}

// inDir names a file by its open directory: no path is walked again, and the name is short enough for a socket.
func inDir(dir *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
}
