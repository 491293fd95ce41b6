package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/engine"
	"sandboxd/internal/job"
	"sandboxd/internal/sandbox"
)

func TestFillMakesAProvedSlot(t *testing.T) {
	r := openRoom(t, nil, nil)
	req := r.request()
	req.Files = map[string][]byte{"task.json": []byte("{}")}
	host := t.TempDir()
	req.Binds = []sandbox.Bind{{Source: host, Target: "/workspace"}, {Source: host, Target: "/mnt/more"}}
	sl := r.fill(t, req)

	if got, want := r.rows.states(), "intent created started ready"; got != want {
		t.Errorf("records %q, want %q", got, want)
	}
	ev := sl.Evidence()
	if ev.Init.Caps != "none" || ev.Stub.Seccomp != 2 || !ev.TwoCgroups || !ev.PeerIsInit || ev.Denied["openat2"] != "ENOSYS" {
		t.Errorf("evidence %+v", ev)
	}
	var stored sandbox.Evidence
	if err := json.Unmarshal(sl.Record().Evidence, &stored); err != nil || len(stored.Mounts) != len(ev.Mounts) {
		t.Errorf("stored evidence: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(sl.Dir(), sandbox.SocketName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}

	command(t, sl, r.posture(), `id -u; id -G | wc -w; cat /proc/self/cgroup | grep memory; cat /sbx/slot/task.json; echo
		grep -cE '^Cap.*:.0000000000000000$' /proc/self/status
		for f in /x /workspace/x /mnt/more/x /sbx/slot/x /dev/x /sys/fs/cgroup/x; do touch $f 2>/dev/null && echo wrote $f; done
		for f in /tmp/x /home/job/x /out/x /run/x; do touch $f || echo no $f; done
		head -c 100 /proc/cmdline; nproc; env | grep -c SBX`)
	out, ex := follow(t, sl)
	want := strings.Join([]string{strconv.Itoa(int(sl.UID())), "8", "4:memory:/job", "{}", "5", "1", "0", ""}, "\n")
	want = strings.Replace(want, "4:memory:/job", memoryLine(out), 1)
	if out != want || !strings.HasSuffix(memoryLine(out), ":/job") {
		t.Errorf("output %q, want %q; %+v", out, want, ex)
	}
	if got, want := r.rows.states(), "intent created started ready taken"; got != want {
		t.Errorf("records %q, want %q", got, want)
	}
	if u, err := sl.Readings(); err != nil || u.CPU <= 0 {
		t.Errorf("readings %+v %v", u, err)
	}
}

func memoryLine(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "memory") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestRemoveLeavesNothingAndMayBeRepeated(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	for range 3 {
		if err := sl.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.rows.states(); got != "intent created started ready gone" {
		t.Errorf("records %q", got)
	}
	if err := sl.HandOver(t.Context(), r.posture()); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("hand-over after removal: %v", err)
	}
	if _, err := sl.Readings(); err == nil {
		t.Error("readings after removal")
	}
}

func TestFillRefusesWhatItCannotHold(t *testing.T) {
	r := openRoom(t, nil, nil)
	for name, change := range map[string]func(*sandbox.Request){
		"slot name":       func(q *sandbox.Request) { q.Slot = "../x" },
		"other image":     func(q *sandbox.Request) { q.Posture.ImageID = "sha256:0" },
		"runsc":           func(q *sandbox.Request) { q.Posture.Runtime = "runsc" },
		"relative source": func(q *sandbox.Request) { q.Binds = []sandbox.Bind{{Source: "x", Target: "/workspace"}} },
		"foreign target":  func(q *sandbox.Request) { q.Binds = []sandbox.Bind{{Source: "/x", Target: "/etc"}} },
		"target twice": func(q *sandbox.Request) {
			q.Binds = []sandbox.Bind{{Source: "/x", Target: "/workspace"}, {Source: "/y", Target: "/workspace"}}
		},
		"deep target":     func(q *sandbox.Request) { q.Binds = []sandbox.Bind{{Source: "/x", Target: "/mnt/a/b"}} },
		"file name":       func(q *sandbox.Request) { q.Files = map[string][]byte{"../x": nil} },
		"a socket's name": func(q *sandbox.Request) { q.Files = map[string][]byte{"init.sock": nil} },
		"zero pids":       func(q *sandbox.Request) { q.Posture.Pids = 0 },
		"zero memory":     func(q *sandbox.Request) { q.Posture.Memory = 0 },
		"too many cores":  func(q *sandbox.Request) { q.Posture.MilliCPUs = 1 << 30 },
		"too much tmpfs":  func(q *sandbox.Request) { q.Posture.TmpBytes = 1 << 30 },
	} {
		t.Run(name, func(t *testing.T) {
			req := r.request()
			change(&req)
			_, err := r.Fill(t.Context(), req)
			var e *job.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
		})
	}
	if got := r.rows.states(); got != "" {
		t.Errorf("records %q", got)
	}
}

func TestMissingBindSourceIsAnErrorAndIsNotMade(t *testing.T) {
	r := openRoom(t, nil, nil)
	missing := filepath.Join(t.TempDir(), "typo")
	req := r.request()
	req.Binds = []sandbox.Bind{{Source: missing, Target: "/workspace"}}
	if _, err := r.Fill(t.Context(), req); engine.KindOf(err) != engine.Invalid {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Lstat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Error("the source was made")
	}
}

// before calls do when a record with the state is written.
func before(r *rows, state sandbox.State, do func(sandbox.SlotRecord) error) {
	r.fail = func(rec sandbox.SlotRecord) error {
		if rec.State == state {
			return do(rec)
		}
		return nil
	}
}

func TestImpostorOnTheSlotSocketIsRefused(t *testing.T) {
	r := openRoom(t, nil, nil)
	var conn net.Conn
	before(r.rows, sandbox.StateStarted, func(rec sandbox.SlotRecord) (err error) {
		conn, err = net.Dial("unix", filepath.Join(rec.Dir, sandbox.SocketName))
		return err
	})
	_, err := r.Fill(t.Context(), r.request())
	_ = conn.Close()
	var gate *sandbox.GateError
	if !errors.As(err, &gate) || !strings.Contains(err.Error(), "peer of the slot's socket") {
		t.Fatalf("got %v", err)
	}
}

func TestOtherUsersCannotReachTheSlotSocket(t *testing.T) {
	r := openRoom(t, nil, nil)
	before(r.rows, sandbox.StateStarted, func(rec sandbox.SlotRecord) error {
		for path, want := range map[string]os.FileMode{
			rec.Dir: 0o750 | os.ModeDir, filepath.Join(rec.Dir, sandbox.SocketName): 0o660 | os.ModeSocket, filepath.Dir(rec.Dir): 0o700 | os.ModeDir,
		} {
			if st, err := os.Lstat(path); err != nil || st.Mode() != want {
				t.Errorf("%s: %v %v, want %v", path, st.Mode(), err, want)
			}
		}
		return nil
	})
	r.fill(t, r.request())
}

func TestInitThatNeverConnectsIsGivenUp(t *testing.T) {
	bin := buildProgram(t, `package main
import "time"
func main() { time.Sleep(time.Hour) }`)
	r := openRoom(t, nil, func(c *sandbox.Config) { c.InitPath, c.StartTimeout = bin, time.Second })
	began := time.Now()
	_, err := r.Fill(t.Context(), r.request())
	if !errors.Is(err, sandbox.ErrInitTimeout) {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestInitThatDiesIsSeenAtOnce(t *testing.T) {
	bin := buildProgram(t, `package main
import ("os"; "time")
func main() { time.Sleep(300*time.Millisecond); os.Exit(3) }`)
	r := openRoom(t, nil, func(c *sandbox.Config) { c.InitPath, c.StartTimeout = bin, time.Minute })
	began := time.Now()
	_, err := r.Fill(t.Context(), r.request())
	if !errors.Is(err, sandbox.ErrInitDied) {
		t.Fatalf("got %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestInitThatConnectsAndSaysNothingIsGivenUp(t *testing.T) {
	bin := buildProgram(t, `package main
import ("net"; "time")
func main() { c, _ := net.Dial("unix", "/sbx/slot/init.sock"); time.Sleep(time.Hour); _ = c }`)
	r := openRoom(t, nil, func(c *sandbox.Config) { c.InitPath, c.StartTimeout = bin, time.Second })
	if _, err := r.Fill(t.Context(), r.request()); !errors.Is(err, sandbox.ErrInitTimeout) {
		t.Fatalf("got %v", err)
	}
}

func TestCancelledFillIsUndone(t *testing.T) {
	r := openRoom(t, nil, nil)
	for _, state := range []sandbox.State{sandbox.StateIntent, sandbox.StateCreated, sandbox.StateStarted, sandbox.StateReady} {
		ctx, cancel := context.WithCancel(t.Context())
		before(r.rows, state, func(sandbox.SlotRecord) error { cancel(); return nil })
		sl, err := r.Fill(ctx, r.request())
		if state == sandbox.StateReady {
			if err != nil {
				t.Errorf("cancelled after the last step: %v", err)
			} else if err := sl.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		} else if err == nil {
			t.Errorf("cancelled at %s and yet filled", state)
		}
	}
	r.rows.fail = nil
}

// flaky fails one call of many, before or after it took effect.
type flaky struct {
	sandbox.Engine
	n     atomic.Int64
	every int64
}

var errFlaky = &engine.Error{Kind: engine.Internal, Op: "any", Err: errors.New("flaky")}

func (f *flaky) fails() bool { return f.n.Add(1)%f.every == 0 }

func (f *flaky) Create(ctx context.Context, c engine.Container) (engine.Created, error) {
	made, err := f.Engine.Create(ctx, c)
	if err == nil && f.fails() { // the reply is lost
		return engine.Created{}, &engine.Error{Kind: engine.TimedOut, Op: engine.OpCreate, Unsure: true, Err: errors.New("flaky")}
	}
	return made, err
}

func (f *flaky) Start(ctx context.Context, id string) error {
	if f.fails() {
		return errFlaky
	}
	return f.Engine.Start(ctx, id)
}

func (f *flaky) Inspect(ctx context.Context, id string) (engine.Container, engine.State, error) {
	if f.fails() {
		return engine.Container{}, engine.State{}, errFlaky
	}
	return f.Engine.Inspect(ctx, id)
}

func (f *flaky) Remove(ctx context.Context, id string) error {
	if f.fails() {
		return errFlaky
	}
	return f.Engine.Remove(ctx, id)
}

func TestNothingIsLeftAfterManyFillsWithFailures(t *testing.T) {
	f := &flaky{Engine: realEngine(t, ""), every: 7}
	r := openRoom(t, f, nil)
	var failed atomic.Int64
	var wait sync.WaitGroup
	work := make(chan int)
	for range 3 {
		wait.Go(func() {
			for range work {
				sl, err := r.Fill(t.Context(), r.request())
				if err != nil {
					failed.Add(1)
					continue
				}
				_ = sl.Remove(t.Context()) // a failure is on the record
			}
		})
	}
	for i := range 30 {
		work <- i
	}
	close(work)
	wait.Wait()
	if failed.Load() == 0 {
		t.Error("no fill failed")
	}
	for range 10 { // what the daemon's sweep does
		for _, rec := range r.rows.all() {
			_ = r.RemoveByRecord(t.Context(), rec)
		}
	}
}

func TestUnansweredCreationIsLookedForAgain(t *testing.T) {
	f := &lateCreate{Engine: realEngine(t, "")}
	r := openRoom(t, f, nil)
	if _, err := r.Fill(t.Context(), r.request()); engine.KindOf(err) != engine.TimedOut {
		t.Fatalf("got %v", err)
	}
	left := r.rows.all()
	if len(left) != 1 || left[0].State != sandbox.StateCleanup {
		t.Fatalf("records %+v", left)
	}
	f.appear(t) // the engine makes it after all
	if err := r.RemoveByRecord(t.Context(), left[0]); err != nil {
		t.Fatal(err)
	}
}

// lateCreate answers nothing and creates later.
type lateCreate struct {
	sandbox.Engine
	late engine.Container
}

func (l *lateCreate) Create(_ context.Context, c engine.Container) (engine.Created, error) {
	l.late = c
	return engine.Created{}, &engine.Error{Kind: engine.TimedOut, Op: engine.OpCreate, Unsure: true, Err: errors.New("no answer")}
}

func (l *lateCreate) appear(t *testing.T) {
	if err := os.MkdirAll(filepath.Dir(l.late.Binds[2].Source), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(l.late.Binds[2].Source, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	if _, err := l.Engine.Create(t.Context(), l.late); err != nil {
		t.Fatal(err)
	}
}
