package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/engine"
	"sandboxd/internal/wire"
)

// containerFindings compares the engine's record of a container with what was rendered: a guard against our own and the
// engine's slips, not against a lying engine, whom the evidence of the kernel catches.
func containerFindings(want, got engine.Container, img engine.Image) []string {
	w, g := reflect.ValueOf(engine.Inherited(want, img)), reflect.ValueOf(engine.Normal(got))
	var out []string
	for i := range w.NumField() {
		if a, b := w.Field(i).Interface(), g.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			out = append(out, fmt.Sprintf("inspection %s: want %s, got %s", w.Type().Field(i).Name, short(a), short(b)))
		}
	}
	return out
}

func short(v any) string {
	s := fmt.Sprintf("%v", v)
	if len(s) > 200 {
		s = s[:100] + " … " + s[len(s)-80:]
	}
	return strconv.Quote(s)
}

// processFindings compares one process's status with what every process of a slot must be.
func processFindings(who string, s status, uid uint32) []string {
	id := strconv.FormatUint(uint64(uid), 10)
	groups := id + " " + strings.Join(groupPlaces(uid), " ")
	var out []string
	expect := func(field, want string) {
		if got := s[field]; got != want {
			out = append(out, fmt.Sprintf("%s %s: want %q, got %q", who, field, want, got))
		}
	}
	for _, f := range capabilityFields {
		if got := s[f]; got == "" || strings.Trim(got, "0") != "" {
			out = append(out, fmt.Sprintf("%s %s: want none, got %q", who, f, got))
		}
	}
	expect("NoNewPrivs", "1")
	expect("Seccomp", "2")
	expect("Uid", strings.Repeat(id+" ", 3)+id)
	expect("Gid", strings.Repeat(id+" ", 3)+id)
	expect("Groups", groups)
	return out
}

// namespaceFindings: none of them may be the host's.
func namespaceFindings(who string, host, got map[string]string) []string {
	var out []string
	for _, kind := range namespaceKinds {
		if got[kind] == "" || got[kind] == host[kind] {
			out = append(out, fmt.Sprintf("%s: shares the host's %s namespace", who, kind))
		}
	}
	return out
}

// idleInterfaces are what the kernel puts into every network namespace by itself; all but lo are down.
var idleInterfaces = []string{"lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}

// networkFindings reads /proc/<pid>/net/dev and net/route: a job has no way out but through a socket of ours.
func networkFindings(devices, routes string) []string {
	var out []string
	for n, line := range strings.Split(strings.TrimSpace(devices), "\n") {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if n >= 2 && !slices.Contains(idleInterfaces, name) {
			out = append(out, fmt.Sprintf("network: has the interface %.32q", name))
		}
	}
	if n := len(strings.Split(strings.TrimSpace(routes), "\n")); n > 1 {
		out = append(out, fmt.Sprintf("network: has %d routes", n-1))
	}
	return out
}

// limitFindings compares the resource limits with /proc/<pid>/limits.
func limitFindings(who string, c engine.Container, got map[string]string) []string {
	names := map[string]string{
		"core": "Max core file size", "memlock": "Max locked memory", "msgqueue": "Max msgqueue size",
		"nofile": "Max open files", "rtprio": "Max realtime priority",
	}
	var out []string
	for _, u := range c.Ulimits {
		have := strings.Fields(got[names[u.Name]] + " - -")
		soft, hard := strconv.FormatInt(u.Soft, 10), strconv.FormatInt(u.Hard, 10)
		if have[1] != hard || have[0] != soft && (u.Name != "nofile" || !raised(have[0], u)) {
			out = append(out, fmt.Sprintf("%s ulimit %s: want %s:%s, got %s:%s", who, u.Name, soft, hard, have[0], have[1]))
		}
	}
	return out
}

// raised reports whether a soft limit lies between what was set and the hard one: Go's runtime raises that of descriptors
// to the hard limit or one below it, in init and stub but not in the command.
func raised(soft string, u engine.Ulimit) bool {
	n, err := strconv.ParseInt(soft, 10, 64)
	return err == nil && n >= u.Soft && n <= u.Hard
}

// deniedWant is what the filter must say to each probe of the stub.
var deniedWant = map[string]unix.Errno{
	wire.ProbeIOUring:     unix.EPERM,
	wire.ProbeVsock:       unix.EPERM,
	wire.ProbeUnshareUser: unix.EPERM,
	wire.ProbeOpenat2:     unix.ENOSYS,
	wire.ProbeSetuidBit:   unix.EPERM,
}

func deniedFindings(ready wire.Ready, uid uint32) []string {
	var out []string
	if ready.UID != int(uid) || ready.GID != int(uid) {
		out = append(out, fmt.Sprintf("stub says uid:gid %d:%d, want %d:%d", ready.UID, ready.GID, uid, uid))
	}
	for _, probe := range slices.Sorted(maps.Keys(deniedWant)) {
		got, said := ready.Denied[probe]
		if want := deniedWant[probe]; !said || unix.Errno(got) != want {
			out = append(out, fmt.Sprintf("probe %s: want %s, got %s", probe, unix.ErrnoName(want), errnoName(got, said)))
		}
	}
	return out
}

func errnoName(n int, said bool) string {
	switch {
	case !said:
		return "no answer"
	case n == 0:
		return "success"
	}
	if name := unix.ErrnoName(unix.Errno(n)); name != "" {
		return name
	}
	return strconv.Itoa(n)
}

// quotaFile is what Go's runtime keeps open to follow its cpu limit.
var quotaFile = regexp.MustCompile(`^/sys/fs/cgroup/([a-z,]+/)?cpu\.(max|cfs_quota_us|cfs_period_us)$`)

// descriptorFindings: a process of ours has sockets, pipes and the kernel's own objects open, and nothing of the host's
// file systems. An old runtime leaked a folder of the host into its containers.
func descriptorFindings(who string, open []string) []string {
	var out []string
	for _, target := range open {
		kind, _, _ := strings.Cut(target, ":")
		if kind != "socket" && kind != "pipe" && kind != "anon_inode" && target != "/dev/null" && !quotaFile.MatchString(target) {
			out = append(out, fmt.Sprintf("%s: has %q open", who, target))
		}
	}
	return out
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// trimLabel takes the newline or NUL off an LSM label.
func trimLabel(text string) string { return strings.TrimRight(text, "\x00\n") }

func mountStrings(live []mountLine) []string {
	var out []string
	for _, m := range live {
		out = append(out, m.String())
	}
	slices.Sort(out)
	return out
}
