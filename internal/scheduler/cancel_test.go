package scheduler_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

func TestCancelEndsAQueuedJobAtOnce(t *testing.T) {
	play(t, one, func(st *stage) {
		st.submit(alice)
		id := st.submit(alice)
		st.settle()
		j := st.cancel(id, false)
		st.settle()
		if j.State != job.Done || st.Queued() != 0 {
			t.Errorf("%s, %d queued", j.State, st.Queued())
		}
		st.wants(id, job.Done)
		st.outcome(id, job.Cancelled)
		if again := st.cancel(id, true); again.State != job.Done {
			t.Errorf("cancelled again: %s", again.State)
		}
	})
}

func TestCancelReachesARunningJobAndAKillIsPassedOn(t *testing.T) {
	play(t, roomy, func(st *stage) {
		id := st.submit(alice)
		st.settle()
		x := st.actor.live[id]
		st.cancel(id, false)
		var cause *job.CancelCause
		if !errors.As(context.Cause(x.kill), &cause) || cause.Reason != job.ReasonByCaller || cause.Kill || st.actor.strong[id] != 0 {
			t.Errorf("%+v, strengthened %d times", cause, st.actor.strong[id])
		}
		st.settle()
		st.wants(id, job.Done)
		st.outcome(id, job.Cancelled)
	})
}

// stubborn is a running job that does not end of a cancel.
func stubborn(st *stage) (id job.ID, let func()) {
	gate := make(chan struct{})
	st.actor.deafUntil = gate
	id = st.submit(alice)
	st.settle()
	return id, func() { close(gate) }
}

func TestTheFirstReasonStaysAndKillIsAdded(t *testing.T) {
	play(t, roomy, func(st *stage) {
		id, let := stubborn(st)
		ctx := context.Background()
		for i, c := range []struct {
			reason job.Reason
			kill   bool
			strong int
		}{{job.ReasonLeaseLost, false, 0}, {job.ReasonByCaller, false, 0}, {job.ReasonByCaller, true, 1}, {job.ReasonByOperator, false, 2}} {
			j, err := st.Cancel(ctx, user(alice), id, c.kill, c.reason)
			if err != nil || j.CancelReason != job.ReasonLeaseLost || st.actor.strong[id] != c.strong {
				t.Errorf("cancel %d: %v, %s, strengthened %d times", i, err, j.CancelReason, st.actor.strong[id])
			}
		}
		let()
		st.settle()
		st.outcome(id, job.Cancelled)
		if r := st.job(id).Outcome.Reason; r != job.ReasonLeaseLost {
			t.Error(r)
		}
	})
}

func TestCancelOfWhatIsUnknownOrDone(t *testing.T) {
	play(t, roomy, func(st *stage) {
		if _, err := st.Cancel(context.Background(), user(alice), "none", false, job.ReasonByCaller); job.CodeOf(err) != job.CodeNotFound {
			t.Error(err)
		}
		id := st.submit(alice)
		st.settle()
		st.actor.end(id)
		st.settle()
		if j := st.cancel(id, true); j.Outcome.Status != job.Success || st.actor.strong[id] != 0 {
			t.Errorf("%+v", j.Outcome)
		}
	})
}

// gate holds one step of the ledger for one job, before or after its commit, until it is let go.
func gate(step string, hook *func(string, job.ID) error) (reached, let chan struct{}) {
	reached, let = make(chan struct{}), make(chan struct{})
	var once sync.Once
	*hook = func(s string, _ job.ID) error {
		if s == step {
			once.Do(func() { close(reached); <-let })
		}
		return nil
	}
	return reached, let
}

// A cancel at each point between submit and the runner's start, and on the way back into the queue: the job ends once,
// its waiters hear of it, and its place is free for the next.
func TestCancelAtEveryPointOfTheStart(t *testing.T) {
	for _, c := range []struct {
		name    string
		step    string
		after   bool
		unclaim bool // the runner gives the job back
		kill    bool
	}{
		{"stored and not queued yet", "admit", true, false, false},
		{"picked and not claimed", "claim", false, false, false},
		{"claimed and not given to the runner", "claim", true, false, false},
		{"claimed, to be killed", "claim", true, false, true},
		{"given to the runner, before the start", "move", false, false, false},
		{"started", "move", true, false, false},
		{"handing over", "journal", false, false, true},
		{"going back to the queue", "move", false, true, false},
		{"back in the ledger's queue only", "move", true, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, one, func(st *stage) {
				hook := &st.ledger.before
				if c.after {
					hook = &st.ledger.after
				}
				reached, let := gate(c.step, hook)
				st.actor.notStarted = func(j job.Job) bool { return c.unclaim && j.OwnerUID == alice }
				submitted := make(chan job.ID)
				go func() {
					j, _, err := st.Submit(context.Background(), user(alice), request())
					if err != nil {
						t.Error(err)
					}
					submitted <- j.ID
				}()
				<-reached
				id := st.ledger.all()[0].ID
				st.cancel(id, c.kill)
				st.settle()
				close(let)
				if got := <-submitted; got != id {
					t.Errorf("%s, %s", got, id)
				}
				st.settle()
				st.wants(id, job.Done)
				st.outcome(id, job.Cancelled)
				if st.Queued() != 0 || st.Running() != 0 {
					t.Errorf("%d queued, %d running", st.Queued(), st.Running())
				}
				next := st.submit(bob)
				st.settle()
				st.wants(next, job.Running)
			})
		})
	}
}

// The wish was stored while the job was on its way back, and is heard of only when it is in the queue again.
func TestCancelThatArrivesAfterTheJobWentBack(t *testing.T) {
	play(t, one, func(st *stage) {
		st.actor.notStarted = func(j job.Job) bool { return j.OwnerUID == alice }
		back, letBack := gate("move", &st.ledger.before)
		id := st.submit(alice)
		<-back
		heard, letHeard := gate("cancel", &st.ledger.after)
		var cancel sync.WaitGroup
		cancel.Go(func() { st.cancel(id, false) })
		<-heard
		st.away.Store(true) // so that the queue keeps it
		close(letBack)
		st.settle()
		close(letHeard)
		cancel.Wait()
		st.wants(id, job.Done)
		st.outcome(id, job.Cancelled)
		if st.Queued() != 0 {
			t.Errorf("%d queued", st.Queued())
		}
	})
}

func TestAStoredCancelOutlivesARestart(t *testing.T) {
	play(t, roomy, func(st *stage) {
		id, let := stubborn(st)
		st.cancel(id, true)
		// The daemon dies here: the next one finds the record as it is.
		next := open(t, roomy, st.ledger, 2)
		next.settle()
		if !next.actor.resumed[id] {
			t.Error("it was not resumed")
		}
		next.wants(id, job.Done)
		next.outcome(id, job.Cancelled)
		next.close()
		let()
	})
}

// Real concurrency, no bubble: whoever comes first, there is exactly one end.
func TestCancelRacingTheEnd(t *testing.T) {
	m := newMemory()
	st := open(t, roomy, m, 1)
	for round := range 1000 {
		id := st.submit(alice)
		for !st.actor.runs(id) {
			continue
		}
		var both sync.WaitGroup
		both.Go(func() { st.actor.end(id) })
		both.Go(func() {
			if _, err := st.Cancel(context.Background(), user(alice), id, round%2 == 0, job.ReasonByCaller); err != nil && !errors.Is(err, store.ErrFenced) {
				t.Error(err)
			}
		})
		both.Wait()
		<-st.Done(id)
		j := st.job(id)
		if j.State != job.Done || j.Outcome == nil || j.Outcome.Status != job.Success && j.Outcome.Status != job.Cancelled || m.ended(id) != 1 {
			t.Fatalf("round %d: %+v, ended %d times", round, j, m.ended(id))
		}
	}
	st.close()
}
