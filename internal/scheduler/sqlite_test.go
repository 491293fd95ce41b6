package scheduler_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sandboxd/internal/job"
	"sandboxd/internal/scheduler"
	"sandboxd/internal/store"
)

// The same life on the real store: it keeps the contract that the ledger in memory only imitates.
func TestLivesOnTheRealStore(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reopen := func() (*store.SQLite, *scheduler.Scheduler, *actor) {
		db := store.New(store.Options{Dir: dir, Node: node, Log: zerolog.Nop()})
		if err := db.Open(ctx); err != nil {
			t.Fatal(err)
		}
		epoch, err := db.Boot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		a := newActor(fitting)
		s := scheduler.New(scheduler.Options{Ledger: db, Node: db, Checker: checker(fitting), Capacity: fitting, NodeName: node, Log: zerolog.Nop()})
		a.s = s
		if err := s.Open(ctx, a, epoch); err != nil {
			t.Fatal(err)
		}
		return db, s, a
	}
	db, s, a := reopen()
	ids := make([]job.ID, 30)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			j, _, err := s.Submit(ctx, user([]uint32{alice, bob}[i%2]), request(cpus(10), memoryOf(gib), key("k"+string(rune('a'+i/3)), "body")))
			if err != nil {
				t.Error(err)
			}
			ids[i] = j.ID
		})
	}
	all.Wait()
	distinct := map[job.ID]bool{}
	for _, id := range ids {
		distinct[id] = true
	}
	if len(distinct) != 20 { // ten keys of two callers
		t.Errorf("%d jobs under 20 keys", len(distinct))
	}
	wait(t, func() bool { return a.running() == 10 }, "ten jobs run")
	var queued job.ID
	for id := range distinct {
		if s.Position(id) > 0 {
			queued = id
		}
	}
	if j, err := s.Cancel(ctx, user(alice), queued, false, job.ReasonByCaller); err != nil || j.State != job.Done {
		t.Errorf("%+v, %v", j.State, err)
	}
	closeAll(t, ctx, db, s)

	db, s, a = reopen()
	wait(t, func() bool { return a.running() == 10 }, "ten jobs run again")
	if s.Queued() != 9 {
		t.Errorf("%d queued", s.Queued())
	}
	for id := range distinct {
		done := s.Done(id)
		for ended := false; !ended; {
			a.end(id)
			select {
			case <-done:
				ended = true
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				t.Fatal("a job does not end")
			}
			for other := range distinct {
				a.end(other)
			}
		}
		if j, err := db.Job(ctx, id); err != nil || j.State != job.Done || (j.Outcome.Status == job.Cancelled) != (id == queued) {
			t.Errorf("%s: %s, %+v, %v", id, j.State, j.Outcome, err)
		}
	}
	closeAll(t, ctx, db, s)
	for _, b := range a.broken {
		t.Error(b)
	}
}

func closeAll(t *testing.T, ctx context.Context, db *store.SQLite, s *scheduler.Scheduler) {
	t.Helper()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func wait(t *testing.T, holds func() bool, what string) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("not so in 5 s: %s", what)
}
