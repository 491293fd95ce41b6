package callerfs

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Rules say which paths may be given to jobs at all.
type Rules struct {
	// Roots that paths must lie in; empty: the path itself must belong to the caller.
	Roots []string
	// Forbidden folders: neither they, nor what lies in them, nor what contains them.
	Forbidden []string
}

// alwaysForbidden are never given out.
var alwaysForbidden = []string{"/proc", "/sys", "/dev", "/run/docker.sock", "/run/containerd"}

// check holds an opened path to the rules. Folders are compared by their resolved names: the descriptor cannot change
// any more.
func (r Rules) check(f *File, c Caller) error {
	if f.Path == "/" {
		return &Refusal{f.Path, "is the whole host; give a folder below it"}
	}
	for _, bad := range append(append([]string{}, alwaysForbidden...), r.Forbidden...) {
		if resolved, err := filepath.EvalSymlinks(bad); err == nil {
			bad = resolved
		}
		if within(f.Path, bad) {
			return &Refusal{f.Path, fmt.Sprintf("lies in %s, which is never given to a job", bad)}
		}
		if within(bad, f.Path) {
			return &Refusal{f.Path, fmt.Sprintf("contains %s, which is never given to a job", bad)}
		}
	}
	if err := fileSystem(f); err != nil {
		return err
	}
	if len(r.Roots) == 0 {
		if f.Owner != c.UID && c.UID != 0 {
			return &Refusal{f.Path, fmt.Sprintf("belongs to uid %d and not to you (uid %d); the operator can allow it in workspace.roots", f.Owner, c.UID)}
		}
		return nil
	}
	for _, root := range r.Roots {
		if within(f.Path, root) {
			return nil
		}
	}
	return &Refusal{f.Path, fmt.Sprintf("lies outside the folders the operator allows (%s)", strings.Join(r.Roots, ", "))}
}

// within reports whether path is folder or lies in it; both are clean and absolute.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
