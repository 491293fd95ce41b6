package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/engine"
	"sandboxd/internal/engine/enginetest"
	"sandboxd/internal/sandbox"
)

// fakeRoom is a sandbox on the fake engine. Its containers have no processes, so no fill passes the gate.
func fakeRoom(t *testing.T) (*sandbox.Sandbox, *enginetest.Fake, *rows, sandbox.Request) {
	t.Helper()
	cfg, r := newConfig(t)
	cfg.CleanupTimeout = 2 * time.Second
	fake := enginetest.NewFake()
	fake.CallTimeout = 300 * time.Millisecond
	t.Cleanup(func() { _ = fake.Close() })
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err == nil {
		fake.Says.CgroupVersion = 1
	}
	id := "sha256:" + strings.Repeat("ab", 32)
	fake.AddImage(engine.Image{ID: id, OS: "linux", Arch: "amd64"})
	s := sandbox.New(cfg, fake)
	mustDo(t, s.Open(t.Context(), nil))
	t.Cleanup(func() {
		mustDo(t, s.Close())
		if left, _ := filepath.Glob(cfg.RunDir + "/slots/*"); len(left) > 0 {
			t.Errorf("slot directories left: %v", left)
		}
	})
	req := sandbox.Request{Slot: sandbox.NewSlotName(), Job: "j", Attempt: 1, Posture: somePosture(), Image: engine.Image{ID: id}}
	req.Posture.ImageID = id
	req.Posture.MilliCPUs = 500
	return s, fake, r, req
}

func TestEngineFaultsAreTypedAndUndone(t *testing.T) {
	for name, c := range map[string]struct {
		faults []enginetest.Fault
		kind   engine.Kind
		died   bool
		left   sandbox.State // "" when nothing is left
	}{
		"create refused":                 {faults: []enginetest.Fault{{Op: engine.OpCreate, Nth: 1, Kind: engine.Invalid}}, kind: engine.Invalid},
		"create: name taken":             {faults: []enginetest.Fault{{Op: engine.OpCreate, Nth: 1, Kind: engine.Conflict}}, kind: engine.Conflict},
		"create: no space":               {faults: []enginetest.Fault{{Op: engine.OpCreate, Nth: 1, Kind: engine.NoSpace}}, kind: engine.NoSpace},
		"create: reply lost, it is made": {faults: []enginetest.Fault{{Op: engine.OpCreate, Nth: 1, LoseReply: true}}, kind: engine.TimedOut},
		"create hangs":                   {faults: []enginetest.Fault{{Op: engine.OpCreate, Nth: 1, Hang: true}}, kind: engine.TimedOut, left: sandbox.StateCleanup},
		"inspect fails":                  {faults: []enginetest.Fault{{Op: engine.OpInspect, Nth: 1, Kind: engine.Internal}}, kind: engine.Internal},
		"start fails":                    {faults: []enginetest.Fault{{Op: engine.OpStart, Nth: 1, Kind: engine.Invalid}}, kind: engine.Invalid},
		"start hangs":                    {faults: []enginetest.Fault{{Op: engine.OpStart, Nth: 1, Hang: true}}, kind: engine.TimedOut},
		"no process":                     {died: true},
		"start and removal fail": {faults: []enginetest.Fault{{Op: engine.OpStart, Nth: 1, Kind: engine.Internal}, {Op: engine.OpRemove, Nth: 1, Kind: engine.Internal}},
			kind: engine.Internal, left: sandbox.StateCleanup},
		"engine goes away": {faults: []enginetest.Fault{{Op: engine.OpStart, Kind: engine.Unavailable}, {Op: engine.OpInspect, Kind: engine.Unavailable}},
			kind: engine.Unavailable, left: sandbox.StateCleanup},
	} {
		t.Run(name, func(t *testing.T) {
			s, fake, r, req := fakeRoom(t)
			for _, f := range c.faults {
				fake.Inject(f)
			}
			_, err := s.Fill(t.Context(), req)
			if c.died && !errors.Is(err, sandbox.ErrInitDied) || !c.died && engine.KindOf(err) != c.kind {
				t.Errorf("got %v", err)
			}
			left := r.all()
			switch {
			case c.left == "" && len(left) > 0:
				t.Fatalf("left %+v", left)
			case c.left != "" && (len(left) != 1 || left[0].State != c.left || left[0].Error == ""):
				t.Fatalf("left %+v, want %s", left, c.left)
			}
			fake.Heal()
			for range 4 { // the sweep
				for _, rec := range r.all() {
					_ = s.RemoveByRecord(t.Context(), rec)
				}
			}
			if left := r.all(); len(left) > 0 {
				t.Errorf("never cleaned up: %+v", left)
			}
			list, err := fake.List(t.Context(), map[string]string{sandbox.LabelSlot: req.Slot})
			if err != nil || len(list) > 0 {
				t.Errorf("containers left: %v %v", list, err)
			}
		})
	}
}

func TestFillThatCannotBeRecordedMakesNothing(t *testing.T) {
	s, fake, r, req := fakeRoom(t)
	broken := errors.New("disk full")
	r.fail = func(rec sandbox.SlotRecord) error { return broken }
	for range 40 { // more than there are uids
		if _, err := s.Fill(t.Context(), req); !errors.Is(err, broken) {
			t.Fatalf("got %v", err)
		}
	}
	if n := fake.Count(engine.OpCreate); n != 0 {
		t.Errorf("%d containers made", n)
	}
}

func TestUIDStaysTakenWhileItsSlotIsNotGone(t *testing.T) {
	s, fake, r, req := fakeRoom(t)
	fake.Inject(enginetest.Fault{Op: engine.OpRemove, Kind: engine.Internal})
	for range 32 {
		req.Slot = sandbox.NewSlotName()
		if _, err := s.Fill(t.Context(), req); !errors.Is(err, sandbox.ErrInitDied) {
			t.Fatalf("got %v", err)
		}
	}
	req.Slot = sandbox.NewSlotName()
	if _, err := s.Fill(t.Context(), req); !errors.Is(err, sandbox.ErrNoUID) {
		t.Fatalf("got %v", err)
	}
	seen := map[uint32]bool{}
	for _, rec := range r.all() {
		if seen[rec.UID] {
			t.Errorf("uid %d twice", rec.UID)
		}
		seen[rec.UID] = true
	}
	fake.Heal()
	mustDo(t, s.RemoveByRecord(t.Context(), r.all()[0]))
	if _, err := s.Fill(t.Context(), req); !errors.Is(err, sandbox.ErrInitDied) {
		t.Fatalf("got %v", err)
	}
	for _, rec := range r.all() {
		mustDo(t, s.RemoveByRecord(t.Context(), rec))
	}
}

func TestRecordsKeepTheirUIDsThroughARestart(t *testing.T) {
	cfg, _ := newConfig(t)
	cfg.UIDCount = 16
	fake := enginetest.NewFake()
	t.Cleanup(func() { _ = fake.Close() })
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err == nil {
		fake.Says.CgroupVersion = 1
	}
	s := sandbox.New(cfg, fake)
	mustDo(t, s.Open(t.Context(), []sandbox.SlotRecord{{Slot: "aaaaaaaa", UID: cfg.UIDFirst}, {Slot: "bbbbbbbb", UID: cfg.UIDFirst + 8, State: sandbox.StateQuarantined}}))
	req := sandbox.Request{Posture: somePosture(), Image: engine.Image{ID: somePosture().ImageID}}
	req.Posture.MilliCPUs = 500
	if _, err := s.Fill(context.Background(), req); !errors.Is(err, sandbox.ErrNoUID) {
		t.Errorf("got %v", err)
	}
}
