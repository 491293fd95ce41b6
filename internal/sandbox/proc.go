package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parsers of what the kernel says in /proc. They are pure; a line they cannot read is an error, never passed over.

// status is /proc/<pid>/status, by field name, values with single spaces.
type status map[string]string

func parseStatus(text string) (status, error) {
	s := status{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if !ok {
			return nil, fmt.Errorf("status: line %q", line)
		}
		s[name] = strings.Join(strings.Fields(value), " ")
	}
	return s, nil
}

// last is the last number of a field: of NSpid the pid in the innermost namespace.
func (s status) last(field string) int {
	parts := strings.Fields(s[field])
	if len(parts) == 0 {
		return -1
	}
	n, err := strconv.Atoi(parts[len(parts)-1])
	if err != nil {
		return -1
	}
	return n
}

// capabilityFields in the order of Evidence.
var capabilityFields = []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}

func (s status) evidence(pid int) ProcessEvidence {
	caps := "none"
	var all []string
	for _, f := range capabilityFields {
		all = append(all, s[f])
		if s[f] == "" || strings.Trim(s[f], "0") != "" {
			caps = ""
		}
	}
	if caps == "" {
		caps = strings.Join(all, " ")
	}
	return ProcessEvidence{
		Pid: pid, Caps: caps, NoNewPrivs: s.last("NoNewPrivs"), Seccomp: s.last("Seccomp"),
		UIDs: s["Uid"], GIDs: s["Gid"], Groups: s["Groups"],
	}
}

// mountLine is one line of /proc/<pid>/mountinfo.
type mountLine struct {
	device      string // major:minor
	root        string // of the mount within its file system
	target      string
	options     []string // of the mount
	propagation []string // shared:N, master:N, …; none when private
	fstype      string
	source      string
	super       map[string]string // options of the file system; "" for those without a value
}

func parseMountinfo(text string) ([]mountLine, error) {
	var out []mountLine
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		dash := slices.Index(f, "-")
		if dash < 6 || len(f) != dash+4 {
			return nil, fmt.Errorf("mountinfo: line %q", line)
		}
		m := mountLine{
			device: f[2], root: unescape(f[3]), target: unescape(f[4]), options: strings.Split(f[5], ","),
			propagation: f[6:dash], fstype: f[dash+1], source: unescape(f[dash+2]), super: map[string]string{},
		}
		for option := range strings.SplitSeq(f[dash+3], ",") {
			name, value, _ := strings.Cut(option, "=")
			m.super[name] = value
		}
		out = append(out, m)
	}
	return out, nil
}

// unescape undoes the kernel's octal escapes of space, tab, newline, backslash and #.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (m mountLine) has(option string) bool { return slices.Contains(m.options, option) }

// String is the form in Evidence: what the job sees, without ids and host paths that differ between equal containers.
func (m mountLine) String() string {
	out := []string{m.target, m.fstype, strings.Join(m.options, ",")}
	if m.fstype == "tmpfs" && m.root == "/" {
		for _, name := range []string{"size", "nr_inodes", "mode", "uid", "gid"} {
			if v, ok := m.super[name]; ok {
				out = append(out, name+"="+v)
			}
		}
	}
	return strings.Join(append(out, m.propagation...), " ")
}

// parseCgroup reads /proc/<pid>/cgroup: controller → path. Version 2 has the name "".
func parseCgroup(text string) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("cgroup: line %q", line)
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			out[name] = parts[2]
		}
	}
	return out, nil
}

// parseLimits reads /proc/<pid>/limits: name → "soft hard".
func parseLimits(text string) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Limit ") {
			continue
		}
		if len(line) < 27 {
			return nil, fmt.Errorf("limits: line %q", line)
		}
		f := strings.Fields(line[26:])
		if len(f) < 2 {
			return nil, fmt.Errorf("limits: line %q", line)
		}
		out[strings.TrimSpace(line[:26])] = f[0] + " " + f[1]
	}
	return out, nil
}
