package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/job"
)

const probeTime = time.Second // for a socket in our place to answer

// holdsSocket looks at what stands where the socket goes: nothing, or a socket. Anything else is an error and stays.
func (d *socketDir) holdsSocket(socket string) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(d.fd(), d.base, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking at %s: %w", socket, err)
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return false, job.Errorf(job.CodeConflict, "socket", "%s exists and is not a socket; move it away or choose another path", socket)
	}
	return true, nil
}

// checkPlace reports whether a socket stands there that nobody answers on, so that it may be replaced. One that may be
// in use is an error.
func (d *socketDir) checkPlace(socket string) (stale bool, err error) {
	if found, err := d.holdsSocket(socket); err != nil || !found {
		return false, err
	}
	c, err := net.DialTimeout("unix", socket, probeTime)
	switch {
	case err == nil:
		return false, errors.Join(job.Errorf(job.CodeConflict, "socket", "somebody answers on %s; stop that daemon or choose another path", socket), c.Close())
	case errors.Is(err, unix.ECONNREFUSED):
		return true, nil
	}
	return false, job.Wrap(job.CodeConflict, err, "%s is a socket that may be in use; stop its owner and remove it, or choose another path", socket)
}

// private makes an empty directory only we can enter, beside the socket. The lock makes its fixed name ours (that of
// the state directory, for the slot of a job), so what a dead daemon left is taken away first.
func (d *socketDir) private() (_ *os.File, undo func() error, err error) {
	name := "." + d.base + ".new"
	clear := func() error {
		err := ignore(unix.ENOENT, unix.Unlinkat(d.fd(), name+"/"+privateName, 0))
		return errors.Join(err, ignore(unix.ENOENT, unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR)))
	}
	if err := clear(); err != nil {
		return nil, nil, fmt.Errorf("clearing %s: %w", name, err)
	}
	if err := unix.Mkdirat(d.fd(), name, 0o700); err != nil {
		return nil, nil, fmt.Errorf("making %s: %w", name, err)
	}
	fd, err := unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("opening %s: %w", name, err), clear())
	}
	f := os.NewFile(uintptr(fd), name)
	return f, func() error { return errors.Join(f.Close(), clear()) }, nil
}

// remove takes the socket's file away if it is the one we made.
func (d *socketDir) remove(dev, ino uint64) error {
	var st unix.Stat_t
	err := unix.Fstatat(d.fd(), d.base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && uint64(st.Dev) == dev && st.Ino == ino {
		err = unix.Unlinkat(d.fd(), d.base, 0)
	}
	return ignore(unix.ENOENT, err)
}
