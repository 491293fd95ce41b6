package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/scheduler"
	"sandboxd/internal/store"
)

func TestAJobGoesFromQueuedToDone(t *testing.T) {
	play(t, roomy, func(st *stage) {
		st.away.Store(true)
		id := st.submit(alice)
		second := st.submit(bob)
		st.settle()
		st.wants(id, job.Queued)
		if st.Position(id) != 1 || st.Position(second) != 2 || st.Queued() != 2 || st.Running() != 0 {
			t.Errorf("positions %d, %d; %d queued, %d running", st.Position(id), st.Position(second), st.Queued(), st.Running())
		}
		st.away.Store(false)
		st.Wake()
		st.settle()
		st.wants(id, job.Running)
		if st.Queued() != 0 || st.Running() != 2 {
			t.Errorf("%d queued, %d running", st.Queued(), st.Running())
		}
		if over, err := st.HandedOver(context.Background(), st.job(id)); err != nil || !over {
			t.Errorf("handed over: %v, %v", over, err)
		}
		st.actor.end(id)
		st.settle()
		st.wants(id, job.Done)
		st.outcome(id, job.Success)
		j := st.job(id)
		if j.Owner != "uid:1000" || j.OwnerUID != alice || j.Root != id || j.Node != node || j.Epoch != 1 || j.Attempt != 1 || j.Times.Settled == 0 || j.Spec.ImageID != "sha256:1" {
			t.Errorf("%+v", j)
		}
		if !st.told("no such job") || st.Position("no such job") != 0 {
			t.Error("a job nobody knows is waited for")
		}
		if _, err := st.Stdin(context.Background(), id); err == nil {
			t.Error("stdin does not come from the runner")
		}
	})
}

func TestWhatAdmissionRefusesIsNeverStored(t *testing.T) {
	play(t, roomy, func(st *stage) {
		if _, created, err := st.Submit(context.Background(), user(alice), request(memoryOf(1))); created || job.CodeOf(err) != job.CodeInvalid {
			t.Errorf("%v, %v", created, err)
		}
		if len(st.ledger.jobs) != 0 || st.Queued() != 0 {
			t.Error("it was stored")
		}
	})
}

func TestWhatTheLedgerRefusesIsNotQueued(t *testing.T) {
	play(t, roomy, func(st *stage) {
		full := errors.New("disk full")
		st.ledger.before = func(step string, _ job.ID) error {
			if step == "admit" {
				return full
			}
			return nil
		}
		if _, created, err := st.Submit(context.Background(), user(alice), request()); created || !errors.Is(err, full) {
			t.Errorf("%v, %v", created, err)
		}
		if st.Queued() != 0 {
			t.Error("it was queued")
		}
	})
}

func TestOneKeyIsOneJob(t *testing.T) {
	play(t, roomy, func(st *stage) {
		ids := make(chan job.ID, 50)
		for range 50 {
			go func() {
				j, _, err := st.Submit(context.Background(), user(alice), request(key("k", "body")))
				if err != nil {
					t.Error(err)
				}
				ids <- j.ID
			}()
		}
		first := <-ids
		for range 49 {
			if id := <-ids; id != first {
				t.Errorf("%s and %s under one key", first, id)
			}
		}
		st.settle()
		if n := len(st.actor.started()); n != 1 {
			t.Errorf("%d jobs ran", n)
		}
		if _, _, err := st.Submit(context.Background(), user(alice), request(key("k", "other"))); job.CodeOf(err) != job.CodeConflict {
			t.Error(err)
		}
		if _, created, err := st.Submit(context.Background(), user(bob), request(key("k", "other"))); err != nil || !created {
			t.Errorf("another caller's key: %v", err)
		}
	})
}

// Wake-ups are hints: with all of them lost, the loop looks by itself.
func TestTheLoopNeedsNoWakeUp(t *testing.T) {
	play(t, roomy, func(st *stage) {
		st.away.Store(true)
		id := st.submit(alice)
		st.settle()
		st.away.Store(false)
		time.Sleep(1100 * time.Millisecond)
		st.settle()
		st.wants(id, job.Running)
	})
}

func TestClosingLeavesTheJobsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := open(t, roomy, newMemory(), 1)
		run, wait := st.submit(alice), job.ID("")
		for range 3 {
			wait = st.submit(alice)
		}
		st.settle()
		st.close()
		if st.job(run).State != job.Running || st.job(wait).State != job.Queued {
			t.Errorf("%s, %s", st.job(run).State, st.job(wait).State)
		}
		if _, _, err := st.Submit(context.Background(), user(alice), request()); job.CodeOf(err) != job.CodeDraining {
			t.Error(err)
		}
		st.close() // twice is once

		next := open(t, roomy, st.ledger, 2)
		next.settle()
		if !next.actor.resumed[run] || next.actor.resumed[wait] {
			t.Errorf("resumed: %v", next.actor.resumed)
		}
		next.wants(run, job.Running)
		next.wants(wait, job.Queued)
		if next.Running() != 2 || next.Queued() != 2 {
			t.Errorf("%d running, %d queued", next.Running(), next.Queued())
		}
		next.actor.end(run)
		next.settle()
		next.wants(run, job.Done)
		next.close()
	})
}

func TestClosingDoesNotWaitForWhoHearsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := open(t, roomy, newMemory(), 1)
		st.actor.deafUntil = make(chan struct{})
		st.submit(alice)
		st.settle()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := time.Now()
		if err := st.Close(ctx); err == nil || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		close(st.actor.deafUntil)
		st.close()
	})
}

func TestNeverOpenedIsClosedAtOnce(t *testing.T) {
	if err := scheduler.New(scheduler.Options{}).Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestALedgerThatCannotBeReadIsNotOpened(t *testing.T) {
	for _, step := range []string{"unfinished", "queued"} {
		m := &unreadable{memory: newMemory(), step: step}
		s := scheduler.New(scheduler.Options{Ledger: m, Node: m, Checker: checker(roomy), Capacity: roomy, NodeName: node})
		if err := s.Open(t.Context(), newActor(roomy), 1); !errors.Is(err, errUnreadable) {
			t.Errorf("%s: %v", step, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

var errUnreadable = errors.New("broken page")

type unreadable struct {
	*memory
	step string
}

func (u *unreadable) Unfinished(ctx context.Context, node string) ([]job.Job, error) {
	if u.step == "unfinished" {
		return nil, errUnreadable
	}
	return u.memory.Unfinished(ctx, node)
}

func (u *unreadable) Queued(context.Context) ([]store.QueueItem, error) { return nil, errUnreadable }
