package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Stage is a folder that only root may enter, where opened host paths are mounted so that the engine can bind from
// them: the mount is made of the descriptor, so nothing that happens to the path afterwards matters. It is needed only
// until the container is created, which then has mounts of its own.
type Stage struct {
	dir  string
	next int
}

// NewStage makes the folder for one slot.
func (s *Sandbox) NewStage(slot string) (*Stage, error) {
	dir := filepath.Join(s.stageRoot(), slot)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("staging folder: %w", err)
	}
	return &Stage{dir: dir}, nil
}

func (s *Sandbox) stageRoot() string { return filepath.Join(s.cfg.RunDir, "stage") }

// Add mounts an opened directory or file read-only, nosuid and nodev, apart from all later mounts of the host, without
// what is mounted below it, and returns the bind for the engine: where it is, and what must show in the container.
func (st *Stage) Add(f *os.File, dir bool, target string) (Bind, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return Bind{}, fmt.Errorf("stat: %w", err)
	}
	at, err := st.mount(f, dir)
	return Bind{Source: at, Target: target, Dev: stat.Dev, Ino: stat.Ino}, err
}

func (st *Stage) mount(f *os.File, dir bool) (string, error) {
	at := filepath.Join(st.dir, strconv.Itoa(st.next))
	st.next++
	if err := makeTarget(at, dir); err != nil {
		return "", err
	}
	tree, err := unix.OpenTree(int(f.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return "", fmt.Errorf("open_tree: %w", err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return "", fmt.Errorf("mount_setattr: %w", err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return "", fmt.Errorf("move_mount: %w", err)
	}
	return at, nil
}

func makeTarget(at string, dir bool) error {
	if dir {
		return os.Mkdir(at, 0o700)
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// checkBinds compares what shows in the container with what was opened. An engine in another mount namespace than the
// daemon sees the empty folders below the staged mounts, and nothing else would tell.
func (f *filling) checkBinds(context.Context) error {
	var findings []string
	for _, b := range f.req.Binds {
		if b.Ino == 0 {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(f.init.path("root"+b.Target), &st); err != nil {
			findings = append(findings, fmt.Sprintf("%s: %v", b.Target, err))
		} else if st.Dev != b.Dev || st.Ino != b.Ino {
			findings = append(findings, b.Target+" shows something else than what was opened; the engine must see the daemon's mounts (no PrivateTmp, ProtectSystem or mount namespace of its own)")
		}
	}
	return f.refuse(findings)
}

// Close unmounts and removes the folder.
func (st *Stage) Close() { _ = clearStage(st.dir) }

// clearStage takes one slot's folder away. The mounts are detached first, so that removing never reaches a host tree.
func clearStage(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var bad []error
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			bad = append(bad, fmt.Errorf("unmount %s: %w", at, err))
			continue
		}
		bad = append(bad, os.Remove(at)) // one entry: an empty folder or file of ours
	}
	bad = append(bad, os.Remove(dir))
	return errors.Join(bad...)
}

// ClearStages takes away what an earlier daemon staged. Call it before the first fill.
func (s *Sandbox) ClearStages() error {
	entries, err := os.ReadDir(s.stageRoot())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var bad []error
	for _, e := range entries {
		bad = append(bad, clearStage(filepath.Join(s.stageRoot(), e.Name())))
	}
	return errors.Join(bad...)
}
