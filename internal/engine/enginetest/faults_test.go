package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/engine"
	"sandboxd/internal/engine/enginetest"
)

// newFake returns a fake with one image, and a container to create from it.
func newFake(t *testing.T) (*enginetest.Fake, engine.Container) {
	t.Helper()
	f := enginetest.NewFake()
	t.Cleanup(func() { _ = f.Close() })
	img := f.AddImage(engine.Image{RepoTags: []string{"tiny:latest"}})
	return f, enginetest.Sample(img, f.Says, enginetest.Tag(), "sleep 600")
}

func create(t *testing.T, f *enginetest.Fake, c engine.Container) string {
	t.Helper()
	made, err := f.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func started(t *testing.T, f *enginetest.Fake, c engine.Container) string {
	t.Helper()
	id := create(t, f, c)
	if err := f.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

func state(t *testing.T, f *enginetest.Fake, id string) engine.State {
	t.Helper()
	_, s, err := f.Inspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantKind(t *testing.T, err error, want engine.Kind) {
	t.Helper()
	if err == nil || engine.KindOf(err) != want {
		t.Fatalf("error %v, want kind %s", err, want)
	}
}

func TestTheNthCallFailsAndNoOther(t *testing.T) {
	f, c := newFake(t)
	id := create(t, f, c)
	f.Inject(enginetest.Fault{Op: engine.OpStart, Nth: 2, Kind: engine.NoSpace, Text: "full"})
	for i, want := range []engine.Kind{"", engine.NoSpace, ""} {
		err := f.Start(t.Context(), id)
		if (err == nil) != (want == "") || err != nil && engine.KindOf(err) != want {
			t.Errorf("call %d: %v, want %q", i+1, err, want)
		}
	}
	var e *engine.Error
	f.Inject(enginetest.Fault{Op: engine.OpKill, Kind: engine.Internal})
	for range 3 {
		if err := f.Kill(t.Context(), id, "SIGKILL"); !errors.As(err, &e) || e.Op != engine.OpKill || e.Ref != id || e.Unsure {
			t.Fatalf("every call should fail: %#v", err)
		}
	}
	f.Heal()
	if err := f.Kill(t.Context(), id, "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	if n := f.Count(engine.OpKill); n != 4 {
		t.Errorf("%d kills counted, want the failed ones too", n)
	}
}

func TestALostReplyHasTakenEffect(t *testing.T) {
	f, c := newFake(t)
	f.Inject(enginetest.Fault{Op: engine.OpCreate, Nth: 1, LoseReply: true})
	_, err := f.Create(t.Context(), c)
	wantKind(t, err, engine.TimedOut)
	if !engine.IsUnsure(err) {
		t.Error("a lost reply is unsure")
	}
	if s := state(t, f, c.Name); s.Status != "created" {
		t.Errorf("state %+v", s)
	}
	_, err = f.Create(t.Context(), c)
	wantKind(t, err, engine.Conflict)
}

func TestAHangEndsWithItsContextOrTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t)
		id := create(t, f, c)
		for _, want := range []time.Duration{5 * time.Second, f.CallTimeout} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), want)
			if want == f.CallTimeout {
				ctx = t.Context()
			}
			f.Inject(enginetest.Fault{Op: engine.OpRemove, Nth: 1, Hang: true})
			err := f.Remove(ctx, id)
			cancel()
			wantKind(t, err, engine.TimedOut)
			if took := time.Since(began); took != want || !engine.IsUnsure(err) {
				t.Errorf("took %v, want %v; unsure %v", took, want, engine.IsUnsure(err))
			}
		}
		f.Heal()
		f.Inject(enginetest.Fault{Op: engine.OpInspect, Delay: time.Minute})
		began := time.Now()
		if s := state(t, f, id); s.Status != "created" || time.Since(began) != time.Minute {
			t.Errorf("a hung removal took effect, or the delay was %v", time.Since(began))
		}
	})
}

func TestAFakeInitRunsAndIsCancelled(t *testing.T) {
	f, c := newFake(t)
	ended := make(chan error, 1)
	f.OnStart = func(id string, got engine.Container) (int, func(context.Context) int, error) {
		if _, s, err := f.Inspect(t.Context(), id); err != nil || s.Status != "created" || got.Name != c.Name {
			t.Errorf("the hook sees %+v, %v", s, err)
		}
		return 4242, func(ctx context.Context) int {
			<-ctx.Done()
			ended <- ctx.Err()
			return 5
		}, nil
	}
	id := started(t, f, c)
	if s := state(t, f, id); s.Pid != 4242 || s.Status != "running" {
		t.Errorf("state %+v", s)
	}
	if err := f.Kill(t.Context(), id, "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	<-ended
	if s := state(t, f, id); s.ExitCode != 137 {
		t.Errorf("state %+v, want the kill's code, not the hook's", s)
	}
	f.OnStart = func(string, engine.Container) (int, func(context.Context) int, error) {
		return 0, nil, errors.New("exec format error")
	}
	c.Name += "-2"
	id = create(t, f, c)
	wantKind(t, f.Start(t.Context(), id), engine.Invalid)
	if s := state(t, f, id); s.ExitCode != 127 || s.Error != "exec format error" {
		t.Errorf("state %+v", s)
	}
}

func TestThingsThatHappenByOtherHands(t *testing.T) {
	f, c := newFake(t)
	stream, err := f.Events(t.Context(), c.Labels)
	if err != nil {
		t.Fatal(err)
	}
	id := started(t, f, c)
	f.Pause(id)
	if s := state(t, f, id); s.Status != "paused" {
		t.Errorf("state %+v", s)
	}
	wantKind(t, f.Start(t.Context(), id), engine.Conflict)
	f.Unpause(id)
	f.OutOfMemory(id)
	if s := state(t, f, id); !s.OOMKilled || s.ExitCode != 137 || s.Status != "exited" {
		t.Errorf("state %+v", s)
	}
	f.Change(id, func(c *engine.Container) { c.PidsLimit = -1 })
	if got, _, _ := f.Inspect(t.Context(), id); got.PidsLimit != engine.Unlimited {
		t.Errorf("pids %d, want unlimited in normal form", got.PidsLimit)
	}
	f.Vanish(id)
	_, _, err = f.Inspect(t.Context(), id)
	wantKind(t, err, engine.NotFound)
	for _, want := range []engine.Action{engine.OutOfMem, engine.Died, engine.Destroyed} {
		if e := <-stream; e.Action != want || e.ID != id {
			t.Errorf("event %+v, want %s", e, want)
		}
	}
	foreign := f.Add(engine.Container{Name: "theirs", Labels: c.Labels}, engine.State{Status: "running", Pid: 7})
	if s := state(t, f, "theirs"); s.ID != foreign || s.Pid != 7 {
		t.Errorf("state %+v", s)
	}
	f.SetDown(true)
	if _, isOpen := <-stream; isOpen {
		t.Error("the stream outlived its engine")
	}
	err = f.Ping(t.Context())
	wantKind(t, err, engine.Unavailable)
	if engine.IsUnsure(err) {
		t.Error("nothing was sent")
	}
	f.SetDown(false)
	f.KillAll(255)
	if s := state(t, f, foreign); s.ExitCode != 255 {
		t.Errorf("state %+v", s)
	}
}

func TestAnEngineThatDropsALimitWithAWarning(t *testing.T) {
	f, c := newFake(t)
	f.OnCreate = func(c *engine.Container) []string {
		c.MemorySwap = -1
		return []string{"swap limit discarded"}
	}
	made, err := f.Create(t.Context(), c)
	if err != nil || len(made.Warnings) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	if got, _, _ := f.Inspect(t.Context(), made.ID); got.MemorySwap != engine.Unlimited {
		t.Errorf("swap %d", got.MemorySwap)
	}
}

func TestImagesOfTheFake(t *testing.T) {
	f, c := newFake(t)
	f.Publish("reg/app:1", engine.Image{ID: "sha256:" + fmt.Sprintf("%064d", 7), Env: []string{"A=1"}})
	var progress []string
	if err := f.ImagePull(t.Context(), "reg/app:1", func(l string) { progress = append(progress, l) }); err != nil || len(progress) == 0 {
		t.Fatalf("%v, progress %q", err, progress)
	}
	img, err := f.ImageInspect(t.Context(), "reg/app:1")
	if err != nil || img.Env[0] != "A=1" || img.RepoTags[0] != "reg/app:1" {
		t.Fatalf("%+v, %v", img, err)
	}
	archive, err := f.ImageSave(t.Context(), img.ID)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(archive); err != nil || len(b) == 0 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	wantKind(t, f.ImagePull(t.Context(), "reg/none", nil), engine.NotFound)
	create(t, f, c)
	wantKind(t, f.ImageRemove(t.Context(), "tiny"), engine.Conflict)
}

func TestManyAtOnce(t *testing.T) {
	f, c := newFake(t)
	f.OnStart = enginetest.ScriptHook
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			c := c
			c.Name = fmt.Sprintf("c%d", i+10)
			made, err := f.Create(t.Context(), c)
			if err != nil {
				t.Error(err)
			}
			for _, err := range []error{f.Start(t.Context(), made.ID), f.Kill(t.Context(), made.ID, "SIGKILL"), f.Remove(t.Context(), made.ID)} {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if list, err := f.List(t.Context(), c.Labels); err != nil || len(list) != 0 {
		t.Errorf("%d left, %v", len(list), err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	f, c := newFake(t)
	f.OnStart = enginetest.ScriptHook
	stream, err := f.Events(t.Context(), c.Labels)
	if err != nil {
		t.Fatal(err)
	}
	id := started(t, f, c)
	f.Inject(enginetest.Fault{Op: engine.OpInspect, Hang: true})
	failed := make(chan error, 1)
	go func() {
		_, _, err := f.Inspect(context.Background(), id)
		failed <- err
	}()
	for f.Count(engine.OpInspect) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the hang outlived Close")
	}
	for range stream { // ends
	}
	wantKind(t, f.Start(t.Context(), id), engine.Unavailable)
}
