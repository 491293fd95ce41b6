package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/engine"
)

// mountRule is what the mount at one target must be.
type mountRule struct {
	fstypes []string // empty: any
	options []string // all of them, of the mount
	super   map[string]string
	root    string // "" for any
	needed  bool
}

// engineMounts are those that the engine and the runtime make by themselves.
var engineMounts = map[string]mountRule{
	"/":                {options: []string{"ro"}, needed: true},
	"/proc":            {fstypes: []string{"proc"}, options: []string{"nosuid", "nodev", "noexec"}, needed: true},
	"/dev":             {fstypes: []string{"tmpfs"}, options: []string{"nosuid"}, super: map[string]string{"mode": "755"}, needed: true},
	"/dev/pts":         {fstypes: []string{"devpts"}, options: []string{"nosuid", "noexec"}},
	"/dev/mqueue":      {fstypes: []string{"mqueue"}, options: []string{"nosuid", "nodev", "noexec"}},
	"/sys":             {fstypes: []string{"sysfs"}, options: []string{"ro", "nosuid", "nodev", "noexec"}, needed: true},
	"/etc/resolv.conf": {options: []string{"ro"}, needed: true},
	"/etc/hostname":    {options: []string{"ro"}, needed: true},
	"/etc/hosts":       {options: []string{"ro"}, needed: true},
}

// Mounts of the cgroup folder: on version 1 a small tmpfs of root with a read-only mount a controller.
var (
	cgroupTop  = mountRule{fstypes: []string{"tmpfs", "cgroup2"}, options: []string{"nosuid", "nodev", "noexec"}}
	cgroupLeaf = mountRule{fstypes: []string{"cgroup"}, options: []string{"ro", "nosuid", "nodev", "noexec"}}
)

// readonlyToo are mounts of the runtime's that secureMounts makes read-only.
var readonlyToo = []string{"/dev", "/sys/fs/cgroup"}

// mountRules are all mounts the container may have. present says which paths the kernel has at all.
func mountRules(c engine.Container, present func(path string) bool) map[string]mountRule {
	rules := map[string]mountRule{}
	for target, rule := range engineMounts {
		rules[target] = rule
	}
	rules["/sys/fs/cgroup"] = cgroupTop
	for target, options := range c.Tmpfs {
		rules[target] = tmpfsRule(options)
	}
	for _, b := range c.Binds {
		rules[b.Target] = mountRule{options: []string{"ro"}, needed: true}
	}
	for _, p := range c.MaskedPaths {
		rules[p] = mountRule{fstypes: []string{"tmpfs", "devtmpfs"}, needed: present(p)}
	}
	for _, p := range c.ReadonlyPaths {
		rules[p] = mountRule{fstypes: []string{"proc"}, options: []string{"ro", "nosuid", "nodev", "noexec"}, needed: present(p)}
	}
	return rules
}

// tmpfsRule reads our own option string.
func tmpfsRule(options string) mountRule {
	r := mountRule{fstypes: []string{"tmpfs"}, root: "/", super: map[string]string{}, needed: true}
	for o := range strings.SplitSeq(options, ",") {
		name, value, _ := strings.Cut(o, "=")
		switch name {
		case "size":
			n, _ := strconv.ParseInt(value, 10, 64)
			r.super["size"] = strconv.FormatInt(n>>10, 10) + "k"
		case "nr_inodes", "uid", "gid":
			r.super[name] = value
		case "mode", "exec": // mode is lost on old runtimes where the image has the path; uid and gid are not
		default:
			r.options = append(r.options, name)
		}
	}
	return r
}

// mountFindings compares the live mounts with what the container may have. hardened: secureMounts ran on it.
func mountFindings(c engine.Container, live []mountLine, present func(string) bool, hardened bool) []string {
	rules := mountRules(c, present)
	masked := map[string]bool{}
	for _, p := range c.MaskedPaths {
		masked[p] = true
	}
	var out []string
	seen := map[string]bool{}
	for _, m := range live {
		rule, known := rules[m.target]
		if !known && strings.HasPrefix(m.target, "/sys/fs/cgroup/") && m.fstype == "cgroup" {
			rule, known = cgroupLeaf, true
		}
		switch {
		case !known:
			out = append(out, "unexpected mount: "+m.String())
			continue
		case seen[m.target]:
			out = append(out, "mounted twice: "+m.String())
		}
		seen[m.target] = true
		out = append(out, rule.findings(m)...)
		if masked[m.target] && !m.hides() {
			out = append(out, "not masked: "+m.String())
		}
		if len(m.propagation) > 0 {
			out = append(out, fmt.Sprintf("mount %s: propagation %s, want private", m.target, strings.Join(m.propagation, " ")))
		}
		if hardened && !m.has("nosuid") {
			out = append(out, "mount "+m.target+": lacks nosuid")
		}
		if hardened && slices.Contains(readonlyToo, m.target) && !m.has("ro") {
			out = append(out, "mount "+m.target+": lacks ro")
		}
	}
	for target, rule := range rules {
		if rule.needed && !seen[target] {
			out = append(out, "missing mount: "+target)
		}
	}
	slices.Sort(out)
	return out
}

// hides: /dev/null over a file, an empty read-only tmpfs over a directory.
func (m mountLine) hides() bool { return m.root == "/null" || m.root == "/" && m.has("ro") }

func (r mountRule) findings(m mountLine) []string {
	var out []string
	if len(r.fstypes) > 0 && !slices.Contains(r.fstypes, m.fstype) {
		out = append(out, fmt.Sprintf("mount %s: file system %s, want %s", m.target, m.fstype, strings.Join(r.fstypes, " or ")))
	}
	for _, o := range r.options {
		if !m.has(o) {
			out = append(out, fmt.Sprintf("mount %s: lacks %s (has %s)", m.target, o, strings.Join(m.options, ",")))
		}
	}
	for name, want := range r.super {
		if got := m.super[name]; got != want {
			out = append(out, fmt.Sprintf("mount %s: %s is %q, want %q", m.target, name, got, want))
		}
	}
	if r.root != "" && m.root != r.root {
		out = append(out, fmt.Sprintf("mount %s: shows %q, want %q", m.target, m.root, r.root))
	}
	return out
}
