package sandbox

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandboxd/internal/job"
)

// maxSocketPath is what the kernel takes as the name of a socket.
const maxSocketPath = 107

// openRunDir makes the run directory and what is constant in it, and refuses one that somebody else could change.
func (s *Sandbox) openRunDir() error {
	dir := s.cfg.RunDir
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
		return job.Errorf(job.CodeInvalid, "state.run_dir", "%q is not an absolute, clean path", dir)
	}
	if n := len(s.slotDir(longestSlot) + "/" + SocketName); n > maxSocketPath {
		return job.Errorf(job.CodeInvalid, "state.run_dir", "%q is too long: sockets in it would have names of %d bytes, at most %d work", dir, n, maxSocketPath)
	}
	for _, d := range []struct {
		path string
		mode os.FileMode
	}{{dir, 0o711}, {s.binDir(), 0o700}, {s.slotsDir(), 0o700}} {
		if err := safeDir(d.path, d.mode); err != nil {
			return err
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(s.binDir(), &fs); err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	if fs.Flags&unix.ST_NOEXEC != 0 {
		return job.Errorf(job.CodeInvalid, "state.run_dir", "%q is on a file system mounted noexec, and containers run init from there", dir).
			WithHint("set [state] run_dir to a folder on another file system")
	}
	return errors.Join(install(s.cfg.InitPath, s.initFile()), install(s.cfg.SbxPath, s.sbxFile()))
}

func (s *Sandbox) binDir() string             { return filepath.Join(s.cfg.RunDir, "bin") }
func (s *Sandbox) initFile() string           { return filepath.Join(s.binDir(), "sbx-init") }
func (s *Sandbox) sbxFile() string            { return filepath.Join(s.binDir(), "sbx") }
func (s *Sandbox) slotsDir() string           { return filepath.Join(s.cfg.RunDir, "slots") }
func (s *Sandbox) slotDir(slot string) string { return filepath.Join(s.slotsDir(), slot) }

// safeDir makes a directory of root's, or checks that it is one and that nobody else can replace it.
func safeDir(dir string, mode os.FileMode) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(dir), 0o755); err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	}
	if err == nil {
		err = os.Chmod(dir, mode)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("run directory: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if err := safeAt(at, at == dir); err != nil {
			return err
		}
		if at == "/" {
			return nil
		}
	}
}

// safeAt: a folder above may be a sticky one of everybody's, such as /tmp; our own may not.
func safeAt(at string, own bool) error {
	var st unix.Stat_t
	if err := unix.Lstat(at, &st); err != nil {
		return fmt.Errorf("run directory: %s: %w", at, err)
	}
	what := ""
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		what = "is a link"
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		what = "is no directory"
	case st.Uid != uint32(os.Geteuid()) && st.Uid != 0:
		what = fmt.Sprintf("belongs to uid %d", st.Uid)
	case st.Mode&0o022 != 0 && (own || st.Mode&unix.S_ISVTX == 0):
		what = fmt.Sprintf("may be written by others (mode %04o)", st.Mode&0o7777)
	default:
		return nil
	}
	return job.Errorf(job.CodeInvalid, "state.run_dir", "%s %s", at, what).WithHint("set [state] run_dir to a folder that only root can write to")
}

// install copies a static binary to where containers get it from: owned by root, executable by all and readable by
// none, so that a process running it is not dumpable from the start.
func install(from, to string) error {
	if err := static(from); err != nil {
		return err
	}
	src, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("installing %s: %w", filepath.Base(to), err)
	}
	defer src.Close()
	tmp := to + ".new"
	_ = os.Remove(tmp) // of a daemon that died here
	dst, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("installing %s: %w", filepath.Base(to), err)
	}
	_, err = io.Copy(dst, src)
	err = errors.Join(err, dst.Chmod(0o111), dst.Sync(), dst.Close())
	if err == nil {
		err = os.Rename(tmp, to)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("installing %s: %w", filepath.Base(to), err)
	}
	return nil
}

// static refuses what the image's own loader would load into, or that is no program at all.
func static(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is no program for containers: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically; build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}
