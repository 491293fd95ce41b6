package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/job"
)

const (
	longestSlot  = "00000000000000000000000000000000"
	maxFiles     = 32
	maxFileBytes = 8 << 20 // a task of 1 MiB grows when it is written as JSON
)

var (
	slotForm = regexp.MustCompile(`^[a-z0-9]{8,32}$`)
	fileForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
)

// NewSlotName makes a random slot name.
func NewSlotName() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process when the kernel has no randomness
	return hex.EncodeToString(b[:])
}

func checkFiles(files map[string][]byte) error {
	if len(files) > maxFiles {
		return job.Errorf(job.CodeTooLarge, "files", "%d files, at most %d", len(files), maxFiles)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case !fileForm.MatchString(name) || strings.HasSuffix(name, ".sock"):
			return job.Errorf(job.CodeInvalid, "files", "%.80q is not a file name here", name)
		case len(files[name]) > maxFileBytes:
			return job.Errorf(job.CodeTooLarge, "files", "%s has %d bytes, at most %d", name, len(files[name]), maxFileBytes)
		}
	}
	return nil
}

// makeSlotDir makes the slot's directory with its files and init's socket. Until the last step only root may enter it,
// so nothing in it can be reached before its own mode and owner stand.
func makeSlotDir(dir string, gid uint32, files map[string][]byte) (*net.UnixListener, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("slot directory: %w", err)
	}
	if err := putFiles(dir, gid, files); err != nil {
		return nil, err
	}
	ln, err := listen(dir, gid)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chown(dir, 0, int(gid)), os.Chmod(dir, 0o750)); err != nil {
		return nil, errors.Join(fmt.Errorf("slot directory: %w", err), ln.Close())
	}
	return ln, nil
}

func putFiles(dir string, gid uint32, files map[string][]byte) error {
	for name, content := range files {
		if err := putFile(filepath.Join(dir, name), gid, content); err != nil {
			return fmt.Errorf("slot directory: %w", err)
		}
	}
	return nil
}

func putFile(path string, gid uint32, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Chown(0, int(gid)), f.Chmod(0o440), f.Close())
}

// listen opens init's socket. It is made beside the slot's directory, where only root may enter, given to the slot, and
// moved into place, so that it is never there with other rights than its own.
func listen(dir string, gid uint32) (*net.UnixListener, error) {
	name := filepath.Join(dir, SocketName)
	hidden := hiddenSocket(dir)
	_ = os.Remove(hidden) // of a daemon that died here
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("slot socket: %w", err)
	}
	ln.SetUnlinkOnClose(false)
	err = errors.Join(os.Chmod(hidden, 0o600), os.Chown(hidden, 0, int(gid)), os.Chmod(hidden, 0o660))
	if err == nil {
		err = os.Rename(hidden, name)
	}
	if err != nil {
		_ = os.Remove(hidden)
		return nil, errors.Join(fmt.Errorf("slot socket: %w", err), ln.Close())
	}
	return ln, nil
}

// closeListener closes the socket and takes its name away: nobody is to wait at a dead door.
func closeListener(ln *net.UnixListener, dir string) error {
	err := ln.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(err, absentIsFine(unix.Unlink(filepath.Join(dir, SocketName))))
}

// removeSlotDir takes the directory away. Only root can write to it, so it holds what makeSlotDir put there.
func removeSlotDir(dir string) error {
	if err := errors.Join(os.RemoveAll(dir), absentIsFine(unix.Unlink(hiddenSocket(dir)))); err != nil {
		return fmt.Errorf("slot directory: %w", err)
	}
	return nil
}

func hiddenSocket(dir string) string { return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)) }
