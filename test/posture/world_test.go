package posture_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"sandboxd/api"
	"sandboxd/test/harness"
)

const (
	tiny = "sandboxd/tiny"
	base = "sandboxd/base"

	// probeAt is the probe in a container.
	probeAt = "/mnt/probe/probe"
	// together is how many containers may run at a time.
	together = 4
	// cancelGrace is the daemon's in these tests.
	cancelGrace = time.Second

	mib = 1 << 20
)

// firstUID of the slots of these tests: apart from those of other daemons on the machine, for equal uids share quotas.
var firstUID = uint32(1970000000 + os.Getpid()%1000*slotUIDs)

const (
	slotUIDs   = 16384
	slotStride = 8
)

// line is what the probe said of one try.
type line struct {
	Probe, Call, Errno, Detail string
}

// world is one daemon with the probe.
type world struct {
	d     *harness.Daemon
	dir   string // the probe's folder, seen at /mnt/probe
	slots *semaphore.Weighted

	plain func() (end, error) // the container of all rows that do not disturb each other, once
}

func newWorld(t *testing.T, images []string) *world {
	t.Helper()
	w := &world{dir: probeDir(t), slots: semaphore.NewWeighted(together)}
	w.d = harness.New(t, harness.Options{Config: config(images)})
	w.plain = sync.OnceValues(w.runPlain)
	return w
}

func config(images []string) string {
	allow, _ := json.Marshal(append([]string{tiny, base}, images...))
	return fmt.Sprintf(`
[images]
allow = %s
[capacity]
max_running = %d
max_running_per_user = %d
[slots]
uid_first = %d
uid_count = %d
uid_stride = %d
[jobs]
cancel_grace = "%s"
`, allow, 2*together, 2*together, firstUID, slotUIDs, slotStride, cancelGrace)
}

// probeDir builds the programs of a job's side.
func probeDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, arch := range map[string]string{"probe": "", "foreign": "386"} {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(dir, name), "./"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if arch != "" {
			cmd.Env = append(cmd.Env, "GOARCH="+arch)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", name, err, out)
		}
	}
	text, err := json.Marshal(allCalls())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "calls.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	openUp(t, dir)
	return dir
}

// openUp lets others read a folder of the test, as a job does.
func openUp(t *testing.T, dir string) {
	t.Helper()
	for d := dir; d != "/"; d = filepath.Dir(d) {
		if st, err := os.Stat(d); err == nil && st.Mode()&0o005 != 0o005 {
			if err := os.Chmod(d, st.Mode()|0o005); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// take waits until so many containers may be made, and gives them back at the end of the test.
func (w *world) take(t *testing.T, n int64) {
	t.Helper()
	if err := w.slots.Acquire(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.slots.Release(n) })
}

// end is how a job ended, with its output.
type end struct {
	api.Result
	output string
}

// run runs a job to its end, in a place of its own: not to be called by a row that has taken places. The arguments are those of sbx run from its flags on; the image is tiny where none is given.
func (w *world) run(t *testing.T, args ...string) end {
	t.Helper()
	if err := w.slots.Acquire(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	defer w.slots.Release(1)
	return w.await(t, w.start(t, args...))
}

// probe runs the probe as the command itself.
func (w *world) probe(t *testing.T, args ...string) end {
	t.Helper()
	return w.run(t, append([]string{"--", probeAt}, args...)...)
}

// start submits a job and returns its id. Call take before.
func (w *world) start(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(w.must(t, w.flags(args)...).Stdout)
}

// sbx runs sbx for a row: a failure of it is the row's, not the daemon's whole test.
func (w *world) sbx(t *testing.T, args ...string) harness.Output {
	t.Helper()
	o, err := w.command(args...)
	if err != nil {
		t.Fatalf("sbx %q: %v", args, err)
	}
	return o
}

func (w *world) command(args ...string) (harness.Output, error) {
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	cmd := w.d.Command(ctx, args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	return harness.Output{Stdout: out.String(), Stderr: errs.String(), Code: cmd.ProcessState.ExitCode()}, err
}

func (w *world) must(t *testing.T, args ...string) harness.Output {
	t.Helper()
	o := w.sbx(t, args...)
	if o.Code != 0 {
		t.Fatalf("sbx %q exited %d\n%s%s", args, o.Code, o.Stdout, o.Stderr)
	}
	return o
}

func (w *world) json(t *testing.T, v any, args ...string) {
	t.Helper()
	if o := w.sbx(t, args...); json.Unmarshal([]byte(o.Stdout), v) != nil {
		t.Fatalf("sbx %q: no JSON of the kind: %.1000s%s", args, o.Stdout, o.Stderr)
	}
}

func (w *world) flags(args []string) []string {
	out := []string{"run", "-d", "-v", w.dir + ":probe"}
	if !slices.ContainsFunc(args[:max(slices.Index(args, "--"), 0)], func(a string) bool { return a == "--image" || a == "--task" }) {
		out = append(out, "--image", tiny)
	}
	return append(out, args...)
}

// await waits for the end of a job.
func (w *world) await(t *testing.T, id string) end {
	t.Helper()
	w.sbx(t, "wait", id)
	var e end
	w.json(t, &e.Result, "result", "--json", id)
	if e.Status == "" {
		t.Fatalf("job %s has no status", id)
	}
	e.output = w.output(t, id)
	return e
}

func (w *world) output(t *testing.T, id string) string {
	t.Helper()
	o := w.sbx(t, "logs", id)
	return o.Stdout + o.Stderr
}

// awaitLine waits until the probe of a running job has said a line with this call.
func (w *world) awaitLine(t *testing.T, id, call string) []line {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		lines := linesOf(w.output(t, id))
		if slices.ContainsFunc(lines, func(l line) bool { return l.Call == call }) {
			return lines
		}
		if j := w.job(t, id); j.Outcome != nil {
			t.Fatalf("the job ended before it said %q: %+v\n%s", call, *j.Outcome, w.output(t, id))
		}
	}
	t.Fatalf("the job did not say %q:\n%s", call, w.output(t, id))
	return nil
}

// inspected is a job as sbx inspect shows it: with its whole result, once it has one.
type inspected struct {
	api.Job
	Result json.RawMessage `json:"result"`
}

func (w *world) job(t *testing.T, id string) inspected {
	t.Helper()
	var jobs []inspected
	w.json(t, &jobs, "inspect", id)
	return jobs[0]
}

func (w *world) kill(t *testing.T, id string) { t.Helper(); w.must(t, "cancel", "--kill", id) }

// place is where a running job is on the host.
type place struct {
	container string
	uid       uint32
	init, pid int               // of init and of one process of the job
	cgroups   map[string]string // of the container, by controller
}

// place finds a running job.
func (w *world) place(t *testing.T, id string) place {
	t.Helper()
	var evidence struct{ Cgroups map[string]string }
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		j := w.job(t, id)
		if j.Outcome != nil {
			t.Fatalf("the job is over: %+v", *j.Outcome)
		}
		if j.State != "running" || j.Slot == nil || j.Slot.Evidence == nil {
			continue
		}
		text, err := json.Marshal(j.Slot.Evidence)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &evidence); err != nil {
			t.Fatal(err)
		}
		p := place{container: j.Slot.ContainerID, uid: j.Slot.UID, cgroups: evidence.Cgroups}
		out, err := exec.Command("docker", "inspect", "-f", "{{.State.Pid}}", p.container).Output()
		if err != nil {
			continue // it ended meanwhile
		}
		p.init, _ = strconv.Atoi(strings.TrimSpace(string(out)))
		text, err = os.ReadFile(filepath.Join(p.cgroups["pids"], "job/cgroup.procs"))
		pids := strings.Fields(string(text))
		if p.init == 0 || err != nil || len(pids) == 0 {
			continue
		}
		p.pid, _ = strconv.Atoi(pids[0])
		return p
	}
	t.Fatal("the job did not come to run")
	return place{}
}

func docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).Output()
	if err != nil {
		t.Fatalf("docker %q: %v", args, err)
	}
	return string(out)
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// linesOf are the probe's lines in an output.
func linesOf(output string) []line {
	var out []line
	for text := range strings.Lines(output) {
		var l line
		if json.Unmarshal([]byte(text), &l) == nil && l.Probe != "" {
			out = append(out, l)
		}
	}
	return out
}

// said is what one probe of the plain container said.
func (w *world) said(t *testing.T, probe string) []line {
	t.Helper()
	e, err := w.plain()
	if err != nil {
		t.Fatal(err)
	}
	lines := of(linesOf(e.output), probe)
	if len(lines) == 0 {
		t.Fatalf("the probe %s said nothing; the job ended %s %s %s\n%.4000s", probe, e.Status, e.Reason, e.Detail, e.output)
	}
	return lines
}

func of(lines []line, probe string) []line {
	return slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.Probe != probe })
}

// find returns the one line of a call.
func find(t *testing.T, lines []line, call string) line {
	t.Helper()
	for _, l := range lines {
		if l.Call == call {
			return l
		}
	}
	t.Errorf("nothing was said of %q", call)
	return line{}
}

// expect holds the errno of a call to the safe ones.
func expect(t *testing.T, lines []line, call string, safe ...string) line {
	t.Helper()
	l := find(t, lines, call)
	if l.Call != "" && !slices.Contains(safe, l.Errno) {
		t.Errorf("%s: %s %q, want %s", call, l.Errno, l.Detail, strings.Join(safe, " or "))
	}
	return l
}

// expectEnd holds how a job ended to a status and reason.
func expectEnd(t *testing.T, e end, status, reason string) {
	t.Helper()
	if e.Status != status || e.Reason != reason {
		t.Errorf("ended %s %s (%s), want %s %s; %+v\n%.2000s", e.Status, e.Reason, e.Detail, status, reason, e.Outcome, e.output)
	}
}

// timed says how long f took.
func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// eventually waits until f holds.
func eventually(t *testing.T, within time.Duration, what string, f func() bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), within)
	defer stop()
	for !f() {
		select {
		case <-ctx.Done():
			t.Errorf("not within %s: %s", within, what)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
