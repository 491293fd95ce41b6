package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/engine"
	"sandboxd/internal/engine/enginetest"
)

// real is a started container on the real engine with all settings of a slot.
type real struct {
	*engine.Docker
	img   engine.Image
	info  engine.Info
	c     engine.Container
	id    string
	state engine.State
}

func newReal(t testing.TB) *real {
	t.Helper()
	r := &real{Docker: enginetest.Real(t)}
	var err error
	if r.info, err = r.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.img = enginetest.Load(t, r, enginetest.ImageSpec{Dirs: []string{"/mnt/ro", "/etc", "/data", "/tmp"}, Volumes: []string{"/data"}})
	return r
}

// run creates and starts a container after change has seen it; it is removed at the test's end.
func (r *real) run(t testing.TB, script string, change func(*engine.Container)) {
	t.Helper()
	tag := enginetest.Tag()
	enginetest.Sweep(t, r, tag)
	r.c = enginetest.Sample(r.img, r.info, tag, script)
	r.c.Tmpfs["/data"] = r.c.Tmpfs["/tmp"]
	change(&r.c)
	made, err := r.Create(t.Context(), r.c)
	if err != nil {
		t.Fatal(err)
	}
	r.id = made.ID
	if err := r.Start(t.Context(), r.id); err != nil {
		t.Fatal(err)
	}
	r.look(t)
}

func (r *real) look(t testing.TB) {
	t.Helper()
	var err error
	if _, r.state, err = r.Inspect(t.Context(), r.id); err != nil {
		t.Fatal(err)
	}
}

func (r *real) end(t testing.TB) engine.State {
	t.Helper()
	for r.look(t); r.state.Status == "running"; r.look(t) {
		time.Sleep(20 * time.Millisecond)
	}
	return r.state
}

// proc reads a file of the container's init.
func (r *real) proc(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(r.state.Pid), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("reads another user's /proc, which needs root")
	}
}

func TestTheKernelShowsWhatWasAsked(t *testing.T) {
	needRoot(t)
	r := newReal(t)
	source := t.TempDir()
	r.run(t, "sleep 600", func(c *engine.Container) {
		c.Binds = []engine.Bind{{Source: source, Target: "/mnt/ro", ReadOnly: true, Propagation: "private"}}
	})
	t.Run("identity and capabilities", func(t *testing.T) {
		status := fields(r.proc(t, "status"))
		for key, want := range map[string]string{
			"Uid": "1900000000 1900000000 1900000000 1900000000", "Gid": "1900000000 1900000000 1900000000 1900000000",
			"Groups": "1900000001 1900000002", "CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
			"NoNewPrivs": "1", "Seccomp": "2",
		} {
			got := status[key]
			if key == "Groups" { // newer runtimes add the primary group
				got = strings.TrimPrefix(got, "1900000000 ")
			}
			if got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		if got := strings.TrimSpace(r.proc(t, "oom_score_adj")); got != "500" {
			t.Errorf("oom_score_adj %s", got)
		}
	})
	t.Run("limits", func(t *testing.T) {
		limits := r.proc(t, "limits")
		for _, want := range []string{"Max core file size 0 0", "Max open files 1024 4096", "Max locked memory 65536 65536", "Max msgqueue size 0 0", "Max realtime priority 0 0"} {
			if !slices.ContainsFunc(strings.Split(limits, "\n"), func(l string) bool { return strings.HasPrefix(strings.Join(strings.Fields(l), " "), want) }) {
				t.Errorf("no line %q in\n%s", want, limits)
			}
		}
	})
	t.Run("mounts", func(t *testing.T) { mountsAsAsked(t, mountsOf(r.proc(t, "mountinfo"))) })
	t.Run("modes", func(t *testing.T) {
		// Where the image has the directory, as it has /tmp, old runtimes take its mode in place of the asked one.
		for dir, wants := range map[string][]os.FileMode{"tmp": {0o777 | os.ModeSticky, 0o755}, "home/job": {0o700}} {
			s, err := os.Stat(filepath.Join("/proc", fmt.Sprint(r.state.Pid), "root", dir))
			if err != nil || !slices.Contains(wants, s.Mode()&^os.ModeDir) {
				t.Errorf("/%s: mode %v, error %v, want one of %v", dir, s.Mode(), err, wants)
			}
		}
	})
	t.Run("cgroup", func(t *testing.T) { limitsAsAsked(t, r) })
	t.Run("names", func(t *testing.T) {
		var lines []string
		for l := range strings.Lines(r.proc(t, "root/etc/resolv.conf")) {
			if !strings.HasPrefix(l, "#") && strings.TrimSpace(l) != "" {
				lines = append(lines, strings.TrimSpace(l))
			}
		}
		slices.Sort(lines)
		// A search of "." means none; some engines write it so, others leave the line out.
		lines = slices.DeleteFunc(lines, func(l string) bool { return l == "search ." })
		if !slices.Equal(lines, []string{"nameserver 127.0.0.1", "options ndots:1"}) {
			t.Errorf("resolv.conf %q", lines)
		}
		if env := r.proc(t, "environ"); strings.Contains(env, "TEST_IMAGE") == false || !strings.Contains(env, "HOSTNAME=sandbox\x00") {
			t.Errorf("environment %q", env)
		}
	})
}

const none = "0000000000000000"

func fields(status string) map[string]string {
	out := map[string]string{}
	for l := range strings.Lines(status) {
		key, value, _ := strings.Cut(l, ":")
		out[key] = strings.Join(strings.Fields(value), " ")
	}
	return out
}

// mountsOf returns options, optional fields, type and super options of each mount point, as one line.
func mountsOf(mountinfo string) map[string]string {
	out := map[string]string{}
	for l := range strings.Lines(mountinfo) {
		f := strings.Fields(l)
		out[f[4]] = strings.Join(f[5:], " ")
	}
	return out
}

func mountsAsAsked(t *testing.T, mounts map[string]string) {
	for target, wants := range map[string][]string{
		"/tmp":      {"rw,nosuid,nodev,noexec,", "size=4096k", "nr_inodes=128", "uid=1900000000", "gid=1900000000"},
		"/home/job": {"rw,nosuid,nodev,relatime", "size=8192k", "nr_inodes=256", "mode=700", "uid=1900000000", "gid=1900000000"},
		"/data":     {"rw,nosuid,nodev,noexec,", "size=4096k", "- tmpfs"},
		"/mnt/ro":   {"ro,"},
	} {
		for _, want := range wants {
			if !strings.Contains(mounts[target], want) {
				t.Errorf("%s lacks %q: %q", target, want, mounts[target])
			}
		}
		if strings.Contains(mounts[target], "shared:") || strings.Contains(mounts[target], "master:") {
			t.Errorf("%s is not private: %q", target, mounts[target])
		}
	}
	if !strings.HasPrefix(mounts["/"], "ro,") || strings.Contains(mounts["/"], "shared:") {
		t.Errorf("/ is %q, want read-only and not shared", mounts["/"])
	}
	for _, masked := range []string{"/proc/kcore", "/proc/keys", "/sys/firmware"} {
		_, err := os.Stat(masked) // what this kernel lacks needs no mask
		if _, isMasked := mounts[masked]; err == nil && !isMasked {
			t.Errorf("%s is not masked", masked)
		}
	}
	if _, exists := mounts["/proc/acpi"]; exists {
		t.Error("/proc/acpi is masked: that is the engine's list, not ours")
	}
	if _, exists := mounts["/dev/shm"]; exists {
		t.Error("/dev/shm is there, though IPC is none")
	}
}

// limitsAsAsked reads the cgroup's own files, for an engine may drop a limit with a mere warning.
func limitsAsAsked(t *testing.T, r *real) {
	paths := map[string]string{}
	for l := range strings.Lines(r.proc(t, "cgroup")) {
		f := strings.SplitN(strings.TrimSpace(l), ":", 3)
		for c := range strings.SplitSeq(f[1], ",") {
			paths[c] = f[2]
		}
	}
	read := func(controller, file string) string {
		dir := filepath.Join("/sys/fs/cgroup", controller, paths[controller])
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(b))
	}
	wants := map[[2]string]string{{"memory", "memory.limit_in_bytes"}: "67108864", {"memory", "memory.memsw.limit_in_bytes"}: "67108864", {"pids", "pids.max"}: "64", {"cpu", "cpu.cfs_quota_us"}: "50000"}
	if r.info.CgroupVersion == 2 {
		wants = map[[2]string]string{{"", "memory.max"}: "67108864", {"", "memory.swap.max"}: "0", {"", "pids.max"}: "64", {"", "cpu.max"}: "50000 100000"}
	}
	for at, want := range wants {
		if got := read(at[0], at[1]); got != want {
			t.Errorf("%s is %s, want %s", at[1], got, want)
		}
	}
	if path := paths["memory"] + paths[""]; !strings.Contains(path, strings.TrimSuffix(r.c.CgroupParent, ".slice")) {
		t.Errorf("cgroup %s is not below %s", path, r.c.CgroupParent)
	}
}

func TestTheKernelsOOMKillShowsInTheState(t *testing.T) {
	r := newReal(t)
	script := "eat"
	if _, isBusybox := enginetest.Program(t); isBusybox {
		script = "exec " + enginetest.ProgramPath + " tail /dev/zero"
	}
	r.run(t, script, func(*engine.Container) {})
	if state := r.end(t); !state.OOMKilled || state.ExitCode != 137 {
		t.Errorf("state %+v, want killed for memory", state)
	}
}

func TestABindIsReadOnlyAndSeen(t *testing.T) {
	if _, isBusybox := enginetest.Program(t); !isBusybox {
		t.Skip("needs a static /bin/busybox")
	}
	r := newReal(t)
	source := t.TempDir()
	if err := os.Chmod(filepath.Dir(source), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(source, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(source, "hello")
	if err := os.WriteFile(file, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.run(t, `test "$(/bin/busybox cat /mnt/ro/hello)" = hello && ! echo x 2>/dev/null >/mnt/ro/new && ! echo x 2>/dev/null >/mnt/ro/hello && exit 7`, func(c *engine.Container) {
		c.Binds = []engine.Bind{{Source: source, Target: "/mnt/ro", ReadOnly: true, Propagation: "private"}}
	})
	if state := r.end(t); state.ExitCode != 7 {
		t.Errorf("exit code %d, want 7", state.ExitCode)
	}
}

// BenchmarkLifecycle measures each call on the real engine with all settings of a slot: go test -bench Lifecycle
// -benchtime 20x. The medians are reported in milliseconds.
func BenchmarkLifecycle(b *testing.B) {
	r := newReal(b)
	took := map[string][]time.Duration{}
	timed := func(name string, call func(context.Context) error) {
		began := time.Now()
		if err := call(b.Context()); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		took[name] = append(took[name], time.Since(began))
	}
	tag := enginetest.Tag()
	enginetest.Sweep(b, r, tag)
	for b.Loop() {
		c := enginetest.Sample(r.img, r.info, tag, "sleep 600")
		c.Tmpfs["/data"] = c.Tmpfs["/tmp"]
		c.Binds = []engine.Bind{{Source: b.TempDir(), Target: "/mnt/ro", ReadOnly: true, Propagation: "private"}}
		var id string
		timed("create", func(ctx context.Context) error {
			made, err := r.Create(ctx, c)
			id = made.ID
			return err
		})
		timed("start", func(ctx context.Context) error { return r.Start(ctx, id) })
		timed("inspect", func(ctx context.Context) error { _, _, err := r.Inspect(ctx, id); return err })
		timed("list", func(ctx context.Context) error { _, err := r.List(ctx, c.Labels); return err })
		timed("kill", func(ctx context.Context) error { return r.Kill(ctx, id, "SIGKILL") })
		timed("remove", func(ctx context.Context) error { return r.Remove(ctx, id) })
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-ms")
		b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, name+"-max-ms")
	}
}
