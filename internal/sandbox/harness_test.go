package sandbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandboxd/internal/engine"
	"sandboxd/internal/envelope"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if builtBinaries != "" {
			_ = os.RemoveAll(builtBinaries)
		}
		os.Exit(code)
	}))
}

// builtBinaries is the folder this run built programs into, if it did.
var builtBinaries string

const testImage = "sandboxd/tiny:latest"

// realEngine returns the Docker of this machine, or skips; where SANDBOXD_TEST_ENGINE says required it fails.
func realEngine(t testing.TB, host string) *engine.Docker {
	t.Helper()
	d := engine.New(engine.Options{Host: host})
	if err := d.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if err := d.Ping(t.Context()); err != nil {
		if os.Getenv("SANDBOXD_TEST_ENGINE") == "required" {
			t.Fatal(err)
		}
		t.Skip("no engine answers: ", err)
	}
	return d
}

// binaries are sbx-init, and a program in the place of sbx; built once.
var binaries = sync.OnceValues(func() ([2]string, error) {
	if dir := os.Getenv("SANDBOXD_TEST_BIN"); dir != "" {
		return [2]string{filepath.Join(dir, "sbx-init"), filepath.Join(dir, "sbx")}, nil
	}
	dir, err := os.MkdirTemp("", "sbxbin")
	if err != nil {
		return [2]string{}, err
	}
	builtBinaries = dir
	out := filepath.Join(dir, "sbx-init")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", out, "sandboxd/cmd/sbx-init")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return [2]string{}, fmt.Errorf("%w: %s", err, text)
	}
	return [2]string{out, out}, nil
})

// rows is the node's memory of slots.
type rows struct {
	mu   sync.Mutex
	last map[string]sandbox.SlotRecord
	log  []string // "slot state"
	fail func(sandbox.SlotRecord) error
}

func (r *rows) record(_ context.Context, rec sandbox.SlotRecord) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(rec); err != nil {
			return err
		}
	}
	r.log = append(r.log, string(rec.State))
	if rec.State == sandbox.StateGone {
		delete(r.last, rec.Slot)
	} else {
		r.last[rec.Slot] = rec
	}
	return nil
}

func (r *rows) all() []sandbox.SlotRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []sandbox.SlotRecord
	for _, rec := range r.last {
		out = append(out, rec)
	}
	return out
}

func (r *rows) states() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, " ")
}

// room is a sandbox under test, with what belongs to it.
type room struct {
	*sandbox.Sandbox
	eng      sandbox.Engine
	rows     *rows
	cfg      sandbox.Config
	instance string
	image    engine.Image
}

// newConfig gives every test an instance, a run directory and a range of uids of its own.
func newConfig(t testing.TB) (sandbox.Config, *rows) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	bin, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "sbx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var id [8]byte
	_, _ = rand.Read(id[:])
	r := &rows{last: map[string]sandbox.SlotRecord{}}
	return sandbox.Config{
		Instance: hex.EncodeToString(id[:]), Epoch: 1, RunDir: filepath.Join(dir, "run"), InitPath: bin[0], SbxPath: bin[1],
		UIDFirst: 1_950_000_000 + uint32(id[0])<<16 + uint32(id[1])<<8, UIDCount: 256, Record: r.record,
		StartTimeout: 10 * time.Second,
	}, r
}

// openRoom opens a sandbox on the real engine (or what wrap makes of it) and sees to it that nothing stays behind.
func openRoom(t testing.TB, eng sandbox.Engine, change func(*sandbox.Config)) *room {
	t.Helper()
	cfg, r := newConfig(t)
	if change != nil {
		change(&cfg)
	}
	direct := realEngine(t, "")
	if eng == nil {
		eng = direct
	}
	img, err := direct.ImageInspect(t.Context(), testImage)
	if err != nil {
		t.Skipf("image %s: %v; make it with: go run ./images tiny", testImage, err)
	}
	rm := &room{Sandbox: sandbox.New(cfg, eng), eng: direct, rows: r, cfg: cfg, instance: cfg.Instance, image: img}
	if err := rm.Open(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rm.nothingLeft(t) })
	return rm
}

// nothingLeft fails the test for everything of this instance that is still there, and takes it away.
func (r *room) nothingLeft(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = r.Close()
	list, err := r.eng.List(ctx, map[string]string{sandbox.LabelInstance: r.instance})
	if err != nil {
		t.Error(err)
	}
	for _, c := range list {
		t.Errorf("container left: %s %s", c.Name, c.Status)
		_ = r.eng.Remove(ctx, c.ID)
	}
	for _, rec := range r.rows.all() {
		t.Errorf("record left: %s %s %s", rec.Slot, rec.State, rec.Error)
	}
	slots, _ := filepath.Glob(r.cfg.RunDir + "/slots/*")
	hidden, _ := filepath.Glob(r.cfg.RunDir + "/slots/.*")
	for _, dir := range append(slots, hidden...) {
		t.Errorf("slot directory left: %s", dir)
	}
	cgroups, _ := filepath.Glob("/sys/fs/cgroup/*/sandboxd-" + r.instance[:8] + "*")
	for _, dir := range cgroups {
		if err := os.Remove(dir); err != nil && !strings.Contains(dir, "unified") {
			t.Errorf("cgroup left: %s: %v", dir, err)
		}
	}
}

// posture is a small one.
func (r *room) posture() envelope.Posture {
	return envelope.Posture{
		ImageID: r.image.ID, Runtime: envelope.RuntimeRunc, MilliCPUs: 500, Memory: 96 << 20, Pids: 64, Nofile: 1024,
		TmpBytes: 8 << 20, HomeBytes: 8 << 20, OutBytes: 8 << 20, Inodes: 1000, HomeExec: true, OutputKeep: 1 << 20, TimeoutMS: 60000,
	}
}

func (r *room) request() sandbox.Request {
	return sandbox.Request{Slot: sandbox.NewSlotName(), Job: "01890000-0000-7000-8000-000000000000", Attempt: 1, Posture: r.posture(), Image: r.image}
}

// fill fills a slot that the test's end removes.
func (r *room) fill(t testing.TB, req sandbox.Request) *sandbox.Slot {
	t.Helper()
	sl, err := r.Fill(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := sl.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	return sl
}

// command hands a slot over and starts a shell command in it.
func command(t testing.TB, sl *sandbox.Slot, p envelope.Posture, script string) {
	t.Helper()
	if err := sl.HandOver(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	start := wire.Start{Argv: wire.ByteStrings{"/bin/sh", "-c", script}, Env: wire.ByteStrings{"PATH=/bin:/usr/bin", "HOME=/home/job"}, Dir: "/",
		TimeoutMS: 60000, FinishMS: 1000, GraceMS: 1000}
	if err := sl.Conn().Send(start); err != nil {
		t.Fatal(err)
	}
}

// follow reads frames until the command has ended, and returns its output.
func follow(t testing.TB, sl *sandbox.Slot) (string, wire.Exited) {
	t.Helper()
	var out bytes.Buffer
	_ = sl.Conn().SetDeadline(time.Now().Add(20 * time.Second))
	for {
		f, err := sl.Conn().Next()
		if err != nil {
			t.Fatalf("%v; output so far %q", err, out.String())
		}
		switch f.Type {
		case wire.TypeOutput:
			out.Write(f.Payload)
		case wire.TypeExited:
			ex, err := wire.Decode[wire.Exited](f)
			if err != nil {
				t.Fatal(err)
			}
			return out.String(), ex
		}
	}
}

// readUntil reads frames until the output ends so.
func readUntil(t testing.TB, sl *sandbox.Slot, end string) string {
	t.Helper()
	var out strings.Builder
	_ = sl.Conn().SetDeadline(time.Now().Add(20 * time.Second))
	for !strings.HasSuffix(out.String(), end) {
		f, err := sl.Conn().Next()
		if err != nil {
			t.Fatalf("%v; output so far %q", err, out.String())
		}
		if f.Type == wire.TypeOutput {
			out.Write(f.Payload)
		}
	}
	return out.String()
}

// buildProgram builds a static Go program and returns its path.
func buildProgram(t testing.TB, source string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "program"), file)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return filepath.Join(dir, "program")
}
