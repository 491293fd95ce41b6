package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/job"
)

// socketDir is the directory of a socket, open; that of the host socket is locked.
type socketDir struct {
	dir  *os.File
	lock *os.File // nil for the slot of a job, which is ours by its name
	base string   // name of the socket in it
}

const dirMode = 0o755

func (d *socketDir) fd() int { return int(d.dir.Fd()) }

// openSocketDir makes the directory where it is missing, refuses one that others could change, and locks it for this
// socket.
func openSocketDir(socket string) (*socketDir, error) {
	if err := makeDirs(filepath.Dir(socket)); err != nil {
		return nil, err
	}
	d, err := openDirOf(socket)
	if err != nil {
		return nil, err
	}
	if err := d.takeLock(socket); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// openDirOf opens the directory of a socket, which others must not be able to change.
func openDirOf(socket string) (*socketDir, error) {
	real, err := filepath.EvalSymlinks(filepath.Dir(socket))
	if err != nil {
		return nil, fmt.Errorf("finding the socket's directory: %w", err)
	}
	if err := checkOwners(real); err != nil {
		return nil, err
	}
	dir, err := os.OpenFile(real, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the socket's directory: %w", err)
	}
	return &socketDir{dir: dir, base: filepath.Base(socket)}, nil
}

// makeDirs makes what is missing of a path, with one mode whatever the umask is.
func makeDirs(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) { // somebody was faster; checkOwners looks at what it is
		return nil
	}
	if err == nil {
		err = os.Chmod(path, dirMode)
	}
	return err
}

// checkOwners refuses a directory that others than root (or ourselves) own or can write, and the same for all above
// it, where a sticky directory such as /tmp will do: others cannot move what is not theirs there.
func checkOwners(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return fmt.Errorf("looking at %s: %w", at, err)
		}
		sticky := at != path && st.Mode&unix.S_ISVTX != 0
		switch {
		case st.Mode&unix.S_IFMT != unix.S_IFDIR:
			return job.Errorf(job.CodeForbidden, "socket", "%s is not a directory; choose another path for the socket", at)
		case st.Uid != 0 && int(st.Uid) != os.Geteuid():
			return job.Errorf(job.CodeForbidden, "socket", "%s belongs to uid %d, who could replace the socket; run 'chown root: %s' or choose another path", at, st.Uid, at)
		case st.Mode&0o022 != 0 && !sticky:
			return job.Errorf(job.CodeForbidden, "socket", "%s can be written by others (mode %04o), who could replace the socket; run 'chmod go-w %s' or choose another path", at, st.Mode&0o7777, at)
		case at == "/":
			return nil
		}
	}
}

// takeLock holds a lock file as long as the socket is ours. The file stays: removing it would let two daemons lock
// two files of one name.
func (d *socketDir) takeLock(socket string) error {
	name := d.base + ".lock"
	fd, err := unix.Openat(d.fd(), name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("opening the lock file %s.lock: %w", socket, err)
	}
	d.lock = os.NewFile(uintptr(fd), name)
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return job.Errorf(job.CodeConflict, "socket", "another daemon%s holds %s.lock; stop it or choose another path", d.holder(), socket)
	}
	if err != nil {
		return fmt.Errorf("locking %s.lock: %w", socket, err)
	}
	if err := d.lock.Truncate(0); err != nil {
		return fmt.Errorf("writing %s.lock: %w", socket, err)
	}
	if _, err := fmt.Fprintf(d.lock, "%d\n", os.Getpid()); err != nil {
		return fmt.Errorf("writing %s.lock: %w", socket, err)
	}
	return nil
}

func (d *socketDir) holder() string {
	buf := make([]byte, 16)
	n, _ := d.lock.ReadAt(buf, 0) // only for the message
	if pid := strings.TrimSpace(string(buf[:n])); pid != "" {
		return " (pid " + pid + ")"
	}
	return ""
}

func (d *socketDir) close() error {
	var errs []error
	for _, f := range []*os.File{d.lock, d.dir} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

func ignore(expected, err error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}
