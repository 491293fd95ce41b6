package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// dirsOf are all places where the cgroup of a container can be, in every hierarchy the host has.
func (s *Sandbox) dirsOf(containerID string) []string {
	leaf := containerID
	if strings.HasSuffix(s.parent, ".slice") {
		leaf = "docker-" + containerID + ".scope"
	}
	var out []string
	for _, dir := range s.parentDirs() {
		out = append(out, filepath.Join(dir, leaf))
	}
	return out
}

// parentDirs are the places of the parent cgroup.
func (s *Sandbox) parentDirs() []string {
	var out []string
	for _, mount := range s.h.mounts {
		out = append(out, filepath.Join(mount, slicePath(s.parent)))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// slicePath is where systemd puts a slice: a-b.slice is below a.slice.
func slicePath(parent string) string {
	name, isSlice := strings.CutSuffix(parent, ".slice")
	if !isSlice {
		return parent
	}
	at, prefix := "/", ""
	for part := range strings.SplitSeq(name, "-") {
		prefix += part
		at = filepath.Join(at, prefix+".slice")
		prefix += "-"
	}
	return at
}

// stuckProcesses are those of a container in uninterruptible sleep.
func (s *Sandbox) stuckProcesses(containerID string) []int {
	if containerID == "" {
		return nil
	}
	var pids []int
	for _, dir := range s.dirsOf(containerID) {
		for _, d := range []string{dir, filepath.Join(dir, jobLeaf), filepath.Join(dir, initLeaf)} {
			more, _ := processesOf(d)
			pids = append(pids, more...)
		}
	}
	slices.Sort(pids)
	return uninterruptible(slices.Compact(pids))
}

// removeCgroups takes away what the runtime may have left of a container's cgroups. A process that is still ending
// keeps its cgroup for a moment.
func (s *Sandbox) removeCgroups(ctx context.Context, containerID string) error {
	if containerID == "" {
		return nil
	}
	for {
		var bad error
		for _, dir := range s.dirsOf(containerID) {
			bad = errors.Join(bad, removeCgroup(dir))
		}
		if bad == nil {
			return nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			if stuck := s.stuckProcesses(containerID); len(stuck) > 0 {
				return &StuckError{Pids: stuck}
			}
			return fmt.Errorf("cgroups of container %.12s: %w", containerID, bad)
		}
	}
}

func removeCgroup(dir string) error {
	if !exists(dir) {
		return nil
	}
	for _, leaf := range []string{jobLeaf, initLeaf, ""} {
		if err := absentIsFine(unix.Rmdir(filepath.Join(dir, leaf))); err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, leaf), err)
		}
	}
	return nil
}

// removeParents takes the parent cgroup away when nothing is in it; the runtime makes it again when it is needed.
func (s *Sandbox) removeParents() {
	for _, dir := range s.parentDirs() {
		_ = unix.Rmdir(dir)
	}
}

// strayAge is how old something without a record must be to be taken away: a container in the making has none of its
// processes in its cgroup yet.
const strayAge = time.Minute

// removeStrayCgroups takes away cgroups below our parent that are empty and of no known container.
func (s *Sandbox) removeStrayCgroups(known func(containerID string) bool) ([]string, error) {
	var out []string
	var bad []error
	for _, parent := range s.parentDirs() {
		entries, err := oldEntries(parent)
		bad = append(bad, err)
		for _, e := range entries {
			id := strings.TrimSuffix(strings.TrimPrefix(e.Name(), "docker-"), ".scope")
			dir := filepath.Join(parent, e.Name())
			if !e.IsDir() || len(id) != 64 || known(id) {
				continue
			}
			if err := removeCgroup(dir); err == nil { // EBUSY: somebody lives there
				out = append(out, dir)
			}
		}
	}
	return out, errors.Join(bad...)
}

// removeStrayDirs takes away slot directories that no record speaks of.
func (s *Sandbox) removeStrayDirs(known func(slot string) bool) ([]string, error) {
	entries, err := oldEntries(s.slotsDir())
	bad := []error{err}
	var out []string
	for _, e := range entries {
		if known(strings.TrimPrefix(e.Name(), ".")) {
			continue
		}
		at := filepath.Join(s.slotsDir(), e.Name())
		err := os.RemoveAll(at)
		bad = append(bad, err)
		if err == nil {
			out = append(out, at)
		}
	}
	return out, errors.Join(bad...)
}

func oldEntries(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		info, err := e.Info()
		return err != nil || time.Since(info.ModTime()) < strayAge
	}), err
}
