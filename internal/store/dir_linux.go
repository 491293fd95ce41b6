package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	lockName = "lock"
	dbName   = "state.db"
)

// netFS are file systems on which neither flock nor the shared memory of a WAL can be trusted.
var netFS = map[int64]string{unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS", unix.SMB2_SUPER_MAGIC: "SMB"}

// prepareDir makes the state directory 0700, or refuses one that others could have tampered with.
func prepareDir(dir string) error {
	fi, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		fi, err = makeDir(dir)
	}
	if err != nil {
		return fmt.Errorf("opening the state directory: %w", err)
	}
	if !fi.IsDir() {
		return fmt.Errorf("the state directory %s is not a directory; name another one", dir)
	}
	uid := fi.Sys().(*syscall.Stat_t).Uid
	if me := uint32(os.Geteuid()); uid != me {
		return fmt.Errorf("the state directory %s belongs to uid %d and not to us (uid %d); run 'chown %d %s' if you trust what is in it", dir, uid, me, me, dir)
	}
	if fi.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("the state directory %s may be written by others (mode %04o); see that nobody put anything in it, then run 'chmod 0700 %s'", dir, fi.Mode().Perm(), dir)
	}
	if err := refuseNetFS(dir); err != nil {
		return err
	}
	if fi.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("closing the state directory to others: %w", err)
		}
	}
	return nil
}

// makeDir makes the directory and its entry durable.
func makeDir(dir string) (fs.FileInfo, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	return os.Stat(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func refuseNetFS(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("looking at the file system of the state directory: %w", err)
	}
	if name, ok := netFS[int64(st.Type)]; ok {
		return fmt.Errorf("the state directory %s is on %s, where locks and shared memory are not reliable; name a directory on a local disk", dir, name)
	}
	return nil
}

// lockDir takes the one daemon's lock. The descriptor is close-on-exec (os.OpenFile sets it), so no child of ours can
// keep the lock alive after us. The pid in the file is for people; the lock itself is the flock.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the state directory: %w", err)
	}
	if err := flock(f); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("the state directory %s is in use by another sandboxd (pid %s); stop it, or name another directory", dir, holder(f))
		}
		return nil, fmt.Errorf("locking the state directory %s: %w", dir, err)
	}
	if err := writePID(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("writing our pid into the lock of %s: %w", dir, err)
	}
	return f, nil
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func holder(f *os.File) string {
	b, _ := io.ReadAll(io.LimitReader(f, 32))
	if _, err := strconv.Atoi(strings.TrimSpace(string(b))); err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// createDB makes an empty database file that only we may read, and its directory entry durable. It must run before
// SQLite opens the file: closing any descriptor of it later would drop SQLite's own locks.
func createDB(dir string) (path string, err error) {
	path = filepath.Join(dir, dbName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("making the state database: %w", err)
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("making the state database: %w", err)
	}
	if err := syncDir(dir); err != nil {
		return "", fmt.Errorf("syncing the state directory: %w", err)
	}
	return path, nil
}
