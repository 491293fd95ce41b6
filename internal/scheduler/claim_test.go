package scheduler_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/scheduler"
	"sandboxd/internal/store"
)

var errDisk = errors.New("disk full")

// fails makes a step of the ledger fail so many times.
func fails(hook *func(string, job.ID) error, step string, times int, err error) {
	*hook = func(s string, _ job.ID) error {
		if s == step && times > 0 {
			times--
			return err
		}
		return nil
	}
}

func TestAClaimThatFailsIsTriedAgain(t *testing.T) {
	play(t, roomy, func(st *stage) {
		fails(&st.ledger.before, "claim", 3, errDisk)
		id := st.submit(alice)
		st.settle()
		st.wants(id, job.Queued)
		if st.Running() != 0 {
			t.Error("it holds a place")
		}
		time.Sleep(4 * time.Second)
		st.settle()
		st.wants(id, job.Running)
	})
}

func TestAJobThatIsNotQueuedAnyMoreIsDropped(t *testing.T) {
	for name, vanish := range map[string]func(*memory, job.ID){
		"taken by another node": func(m *memory, id job.ID) { j := m.jobs[id]; j.State, j.Node = job.Starting, "other"; m.jobs[id] = j },
		"pruned":                func(m *memory, id job.ID) { delete(m.jobs, id) },
	} {
		play(t, roomy, func(st *stage) {
			st.ledger.before = func(step string, id job.ID) error {
				if step == "claim" {
					st.ledger.mu.Lock()
					defer st.ledger.mu.Unlock()
					vanish(st.ledger, id)
				}
				return nil
			}
			id := st.submit(alice)
			st.settle()
			if st.Queued() != 0 || st.Running() != 0 || !st.told(id) {
				t.Errorf("%s: %d queued, %d running, waiters told %v", name, st.Queued(), st.Running(), st.told(id))
			}
		})
	}
}

// The claim was committed and its answer lost: the job must not stay starting for ever, nor run twice.
func TestAClaimWhoseAnswerWasLostIsTakenUp(t *testing.T) {
	play(t, roomy, func(st *stage) {
		fails(&st.ledger.after, "claim", 1, errDisk)
		id := st.submit(alice)
		st.settle()
		st.wants(id, job.Running)
		if n := len(st.actor.started()); n != 1 {
			t.Errorf("started %d times", n)
		}
	})
	play(t, roomy, func(st *stage) {
		// The record cannot be read at first either, and the next claim finds the job out of the queue.
		fails(&st.ledger.after, "claim", 1, errDisk)
		fails(&st.ledger.before, "job", 2, errDisk)
		id := st.submit(alice)
		st.settle()
		time.Sleep(2100 * time.Millisecond)
		st.settle()
		st.wants(id, job.Running)
	})
}

func TestAJobOfAnEarlierEpochIsNotTakenUp(t *testing.T) {
	play(t, roomy, func(st *stage) {
		st.ledger.before = func(step string, id job.ID) error {
			if step == "claim" { // another daemon has it
				st.ledger.mu.Lock()
				defer st.ledger.mu.Unlock()
				j := st.ledger.jobs[id]
				j.State, j.Epoch = job.Starting, 7
				st.ledger.jobs[id] = j
			}
			return nil
		}
		st.submit(alice)
		st.settle()
		if len(st.actor.started()) != 0 || st.Running() != 0 {
			t.Error("it was started")
		}
	})
}

func TestAJobThatDidNotStartIsQueuedAgainAfterARest(t *testing.T) {
	play(t, roomy, func(st *stage) {
		tries := 0
		st.actor.notStarted = func(job.Job) bool { tries++; return tries < 3 }
		id := st.submit(alice)
		st.settle()
		if j := st.job(id); j.State != job.Starting || st.Running() != 1 {
			t.Errorf("%s, %d running", j.State, st.Running())
		}
		began := time.Now()
		for st.job(id).State != job.Running && time.Since(began) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < 6*time.Second || took > 7*time.Second || tries != 3 || st.job(id).Attempt != 3 {
			t.Errorf("after %s in %d tries, attempt %d", took, tries, st.job(id).Attempt)
		}
		st.settle()
		st.wants(id, job.Running)
		if order := st.actor.started(); !slices.Equal(order, []job.ID{id, id, id}) {
			t.Error(order)
		}
	})
}

func TestAttemptsAreFew(t *testing.T) {
	play(t, roomy, func(st *stage) {
		st.actor.notStarted = func(job.Job) bool { return true }
		id := st.submit(alice)
		time.Sleep(time.Minute)
		st.settle()
		st.wants(id, job.Done)
		st.outcome(id, job.Failed)
		if n := len(st.actor.started()); n != 3 || st.MayRetry(job.Job{Attempt: 3}) || !st.MayRetry(job.Job{Attempt: 2}) {
			t.Errorf("%d attempts", n)
		}
	})
}

func TestGoingBackToTheQueueIsTriedUntilItIsDone(t *testing.T) {
	play(t, roomy, func(st *stage) {
		first := true
		st.actor.notStarted = func(job.Job) bool { defer func() { first = false }(); return first }
		fails(&st.ledger.before, "move", 4, errDisk)
		id := st.submit(alice)
		time.Sleep(30 * time.Second)
		st.settle()
		st.wants(id, job.Running)
		if st.job(id).Attempt != 2 {
			t.Errorf("attempt %d", st.job(id).Attempt)
		}
	})
}

func TestGoingBackToTheQueueEndsWithTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := open(t, roomy, newMemory(), 1)
		st.actor.notStarted = func(job.Job) bool { return true }
		fails(&st.ledger.before, "move", 1<<30, errDisk)
		id := st.submit(alice)
		time.Sleep(10 * time.Second)
		began := time.Now()
		st.close()
		if time.Since(began) > 0 || st.job(id).State != job.Starting {
			t.Errorf("after %s, %s", time.Since(began), st.job(id).State)
		}
		st.ledger.before = nil
		next := open(t, roomy, st.ledger, 2)
		next.settle()
		next.wants(id, job.Running)
		if next.job(id).Attempt != 2 || !next.actor.resumed[id] {
			t.Errorf("attempt %d, resumed %v", next.job(id).Attempt, next.actor.resumed[id])
		}
		next.close()
	})
}

// A fenced job is somebody else's; it is dropped and its waiters look for themselves.
func TestAFencedJobDoesNotGoBack(t *testing.T) {
	play(t, roomy, func(st *stage) {
		st.actor.notStarted = func(job.Job) bool { return true }
		fails(&st.ledger.before, "move", 1, store.ErrFenced)
		id := st.submit(alice)
		time.Sleep(time.Minute)
		st.settle()
		if st.Queued() != 0 || st.Running() != 0 || !st.told(id) || len(st.actor.started()) != 1 {
			t.Errorf("%d queued, %d running, told %v, started %d times", st.Queued(), st.Running(), st.told(id), len(st.actor.started()))
		}
	})
}

func TestAnEndThatWasNotStoredIsNotTold(t *testing.T) {
	play(t, roomy, func(st *stage) {
		id := st.submit(alice)
		st.settle()
		fails(&st.ledger.before, "finish", 1, errDisk)
		if err := st.Finish(context.Background(), st.job(id), job.Running, job.Ended{}); !errors.Is(err, errDisk) {
			t.Error(err)
		}
		st.wants(id, job.Running)
		if err := st.Finish(context.Background(), st.job(id), job.Running, job.Ended{Outcome: job.Outcome{Status: job.Success}}); err != nil {
			t.Error(err)
		}
		st.wants(id, job.Done)
		if err := st.Finish(context.Background(), st.job(id), job.Running, job.Ended{}); !errors.Is(err, store.ErrFenced) {
			t.Error(err)
		}
		if st.Running() != 1 {
			t.Error("the place is free while the runner still has it")
		}
	})
}

func TestAnEndWaitsForALedgerThatCannotBeWrittenNow(t *testing.T) {
	play(t, roomy, func(st *stage) {
		full := job.Errorf(job.CodeUnavailable, "", "disk full")
		id := st.submit(alice)
		st.settle()
		fails(&st.ledger.before, "finish", 3, full)
		st.actor.end(id)
		st.settle()
		st.wants(id, job.Running)
		time.Sleep(3100 * time.Millisecond)
		st.settle()
		st.wants(id, job.Done)

		fails(&st.ledger.before, "finish", 1<<30, full)
		second := st.submit(alice)
		st.settle()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if err := st.Finish(ctx, st.job(second), job.Running, job.Ended{}); !errors.Is(err, full) || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestStepsOutOfTurnAreRefused(t *testing.T) {
	play(t, roomy, func(st *stage) {
		id := st.submit(alice)
		st.settle()
		j := st.job(id)
		ctx := context.Background()
		stale := j
		stale.Attempt = 2
		for name, err := range map[string]error{"start twice": st.Started(ctx, j), "another attempt": st.Finishing(ctx, stale)} {
			if !errors.Is(err, store.ErrFenced) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestLessCapacityAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := scheduler.Capacity{MaxRunning: 4, MaxRunningPerUID: 4, MilliCPUs: 8000, Memory: 64 * gib}
		st := open(t, large, newMemory(), 1)
		running := []job.ID{st.submit(alice, cpus(3000)), st.submit(alice, cpus(3000))}
		st.settle()
		unfit, unfitMemory, fits := st.submit(alice, cpus(5000)), st.submit(bob, memoryOf(16*gib), cpus(4000)), st.submit(bob, cpus(4000))
		st.settle()
		st.close()

		small := scheduler.Capacity{MaxRunning: 1, MaxRunningPerUID: 1, MilliCPUs: 4000, Memory: 16 * gib}
		next := open(t, small, st.ledger, 2)
		next.settle()
		for _, id := range []job.ID{unfit, unfitMemory} {
			next.wants(id, job.Done)
			next.outcome(id, job.Failed)
		}
		if o := next.job(unfitMemory).Outcome; o.Reason != job.ReasonStartFailed || o.Detail != "needs 4 cores and 16408MiB of memory; since the daemon's restart all jobs together may use 4 and 16GiB" {
			t.Errorf("%+v", o)
		}
		next.wants(fits, job.Queued)
		for _, id := range running {
			next.wants(id, job.Running)
			next.actor.end(id)
		}
		next.settle()
		next.wants(fits, job.Running)
		next.close()
	})
}

// Two daemons' worth of capacity: what was queued is counted as what is submitted now, with the memory of its init.
func TestTheQueueOfAnEarlierDaemonCountsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := open(t, fitting, newMemory(), 1)
		st.away.Store(true)
		for range 20 {
			st.submit(alice, cpus(10), memoryOf(gib))
		}
		st.close()
		next := open(t, fitting, st.ledger, 2)
		next.settle()
		if next.Running() != 10 {
			t.Errorf("%d run", next.Running())
		}
		next.close()
	})
}
