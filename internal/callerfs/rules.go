package callerfs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Rules say which paths may be given to jobs at all.
type Rules struct {
	// Roots that paths must lie in; empty: the path itself must belong to the caller.
	Roots []string
	// Forbidden folders: neither they, nor what lies in them, nor what contains them.
	Forbidden []string
}

// alwaysForbidden are never given out: the kernel's, and what is worth root.
var alwaysForbidden = []string{"/proc", "/sys", "/dev", "/run/docker.sock", "/run/docker", "/run/containerd", "/var/lib/docker", "/var/lib/containerd"}

// rules are Rules with their links resolved. That is done once: on a folder that a caller may mount something on, a
// look at each request would hang with it.
type rules struct {
	roots, forbidden []string
}

func (r Rules) resolve() rules {
	var out rules
	for _, f := range r.Roots {
		out.roots = append(out.roots, resolve(f))
	}
	for _, f := range slices.Concat(alwaysForbidden, r.Forbidden) {
		// The name without its links resolved counts as well: the link may be made later.
		out.forbidden = append(out.forbidden, filepath.Clean(f))
		if there := resolve(f); !slices.Contains(out.forbidden, there) {
			out.forbidden = append(out.forbidden, there)
		}
	}
	return out
}

// resolve follows the links of a path as far as it exists.
func resolve(path string) string {
	path = filepath.Clean(path)
	if there, err := filepath.EvalSymlinks(path); err == nil {
		return there
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolve(parent), filepath.Base(path))
}

// check holds an opened path to the rules. Folders are compared by their resolved names: the descriptor cannot change
// any more.
func (r rules) check(f *File, c Caller) error {
	if f.Path == "/" {
		return &Refusal{f.Path, "is the whole host; give a folder below it"}
	}
	for _, bad := range r.forbidden {
		if within(f.Path, bad) {
			return &Refusal{f.Path, fmt.Sprintf("lies in %s, which is never given to a job", bad)}
		}
		if within(bad, f.Path) {
			return &Refusal{f.Path, fmt.Sprintf("contains %s, which is never given to a job", bad)}
		}
	}
	if len(r.roots) == 0 {
		if f.Owner != c.UID && c.UID != 0 {
			return &Refusal{f.Path, fmt.Sprintf("belongs to uid %d and not to you (uid %d); the operator can allow it in workspace.roots", f.Owner, c.UID)}
		}
		return nil
	}
	for _, root := range r.roots {
		if within(f.Path, root) {
			return nil
		}
	}
	return &Refusal{f.Path, fmt.Sprintf("lies outside the folders the operator allows (%s)", strings.Join(r.roots, ", "))}
}

// within reports whether path is folder or lies in it; both are clean and absolute.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
