package envelope

import (
	"path"
	"slices"
	"strings"

	"sandboxd/internal/job"
)

// inside reports whether a host path is another one or lies below it. Both are resolved: clean, absolute, without links.
func inside(child, above string) bool {
	return child == above || above == anyPath || strings.HasPrefix(child, above+"/")
}

// soundPath reports whether a path can be compared as text.
func soundPath(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && len(p) <= maxPathBytes && strings.IndexByte(p, 0) < 0
}

// paths orders the path of a workspace: none, then inside. A path that is not sound is inside itself alone.
var paths = order[string]{
	within: func(child, above string) bool {
		return child == "" || child == above || soundPath(child) && soundPath(above) && inside(child, above)
	},
	meet: func(a, b string) string {
		switch {
		case soundPath(a) && soundPath(b) && inside(a, b):
			return a
		case soundPath(a) && soundPath(b) && inside(b, a):
			return b
		}
		return ""
	},
	show: showPath,
	say: func(child, above string) (string, string) {
		if above == "" {
			return child, "none"
		}
		return child, above + " and what is in it"
	},
}

func showPath(p string) string {
	switch p {
	case "":
		return "none"
	case anyPath:
		return "any"
	}
	return p
}

// sources orders mounts: each source is one of the parent's or inside one. They are read-only, whatever their name.
var sources = order[[]job.Mount]{
	within: func(child, above []job.Mount) bool { return len(outside(child, above)) == 0 },
	meet: func(a, b []job.Mount) []job.Mount {
		var out []job.Mount
		for _, side := range [][2][]job.Mount{{a, b}, {b, a}} {
			for _, m := range side[0] {
				if within := len(outside([]job.Mount{m}, side[1])) == 0; within && !slices.Contains(out, m) && len(outside([]job.Mount{m}, out)) > 0 {
					out = append(out, m)
				}
			}
		}
		return out
	},
	show: showMounts,
	say: func(child, above []job.Mount) (string, string) {
		return showMounts(outside(child, above)), showMounts(above)
	},
}

// outside lists the mounts of child whose source lies in no source of above.
func outside(child, above []job.Mount) (out []job.Mount) {
	for _, m := range child {
		if !slices.ContainsFunc(above, func(have job.Mount) bool { return m.Source != "" && paths.within(m.Source, have.Source) }) {
			out = append(out, m)
		}
	}
	return out
}

func showMounts(mounts []job.Mount) string {
	words := make([]string, len(mounts))
	for i, m := range mounts {
		words[i] = m.Source
		if m.Name != "" {
			words[i] += ":" + m.Name
		}
		if m.Source == anyPath {
			return "any"
		}
	}
	return showNames(words)
}
