package ledgertest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

func cancelByState(t *testing.T, l store.Ledger) {
	c := store.Cancel{Reason: job.ReasonByOperator, By: "uid:0", NowMS: Start + 9}
	for _, at := range job.States() {
		j := Admit(t, l, NewJob(t, 1000))
		Bring(t, l, j, at)
		before := mustJob(t, l, j.ID)
		got, ended := mustCancel(t, l, j, c)
		switch at {
		case job.Queued:
			if !ended || got.State != job.Done || got.Outcome.Status != job.Cancelled || got.Outcome.Reason != job.ReasonByOperator || got.Times.Finished != Start+9 {
				t.Errorf("queued: ended %v, %+v", ended, got)
			}
		case job.Done:
			if diff := cmp.Diff(before, got); ended || diff != "" {
				t.Errorf("done: ended %v, changed:\n%s", ended, diff)
			}
		default:
			if ended || got.State != at || got.CancelReason != job.ReasonByOperator || got.CancelKill {
				t.Errorf("%s: ended %v, %s, reason %q", at, ended, got.State, got.CancelReason)
			}
		}
	}
	if _, _, err := l.Cancel(t.Context(), NewJob(t, 1).ID, c); job.CodeOf(err) != job.CodeNotFound {
		t.Errorf("an unknown job: %v", err)
	}
	if _, _, err := l.Cancel(t.Context(), NewJob(t, 1).ID, store.Cancel{NowMS: 1}); err == nil || job.CodeOf(err) == job.CodeNotFound {
		t.Errorf("a cancel without reason: %v", err)
	}
}

func cancelTwice(t *testing.T, l store.Ledger) {
	j := Admit(t, l, NewJob(t, 1000))
	Bring(t, l, j, job.Running)
	mustCancel(t, l, j, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
	if got, _ := mustCancel(t, l, j, store.Cancel{Reason: job.ReasonLeaseLost, NowMS: Start}); got.CancelReason != job.ReasonByCaller || got.CancelKill {
		t.Errorf("a second cancel: %q, kill %v", got.CancelReason, got.CancelKill)
	}
	if got, _ := mustCancel(t, l, j, store.Cancel{Reason: job.ReasonByOperator, Kill: true, NowMS: Start}); got.CancelReason != job.ReasonByCaller || !got.CancelKill {
		t.Errorf("a kill: %q, kill %v", got.CancelReason, got.CancelKill)
	}
	if got, _ := mustCancel(t, l, j, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start}); !got.CancelKill {
		t.Error("a softer cancel took the kill back")
	}
	types := []string{}
	for _, e := range events(t, l, store.Viewer{Principal: j.Owner}) {
		types = append(types, e.Type)
	}
	if want := []string{"queued", "starting", "running", "cancel_requested", "cancel_requested"}; !slices.Equal(types, want) {
		t.Errorf("events %v, want %v", types, want)
	}
}

func unclaimCancelled(t *testing.T, l store.Ledger) {
	j := Admit(t, l, NewJob(t, 1000))
	Bring(t, l, j, job.Starting)
	mustCancel(t, l, j, store.Cancel{Reason: job.ReasonLeaseLost, NowMS: Start})
	if err := l.Move(t.Context(), store.Move{ID: j.ID, Attempt: 1, From: job.Starting, To: job.Queued, NowMS: Start + 7}); err != nil {
		t.Fatal(err)
	}
	got := mustJob(t, l, j.ID)
	if got.State != job.Done || got.Outcome.Status != job.Cancelled || got.Outcome.Reason != job.ReasonLeaseLost {
		t.Errorf("%s, outcome %+v", got.State, got.Outcome)
	}
	if q, err := l.Queued(t.Context()); err != nil || len(q) != 0 {
		t.Errorf("%d queued, %v", len(q), err)
	}
	a := Admission(NewJob(t, 1000))
	a.MaxQueued, a.MaxQueuedPerUID = 1, 1
	if _, _, err := l.Admit(t.Context(), a); err != nil {
		t.Errorf("its place in the queue is still taken: %v", err)
	}
}

// cancelRacesFinish lets a cancel, two ends and a kill meet, and counts the ends in the events.
func cancelRacesFinish(t *testing.T, l store.Ledger) {
	froms := []job.State{job.Queued, job.Starting, job.Running, job.Finishing}
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	for i := range rounds {
		from := froms[i%len(froms)]
		j := Admit(t, l, NewJob(t, 1000))
		Bring(t, l, j, from)
		wins := make([]bool, 4)
		parallel(t, 4, func(who int) {
			switch who {
			case 0, 1:
				_, ended, err := l.Cancel(t.Context(), j.ID, store.Cancel{Reason: job.ReasonByCaller, Kill: who == 1, NowMS: Start})
				if err != nil {
					t.Error(err)
				}
				wins[who] = ended
			default:
				err := l.Finish(t.Context(), Success(j, from))
				if err != nil && !errors.Is(err, store.ErrFenced) {
					t.Error(err)
				}
				wins[who] = err == nil
			}
		})
		checkOneEnd(t, mustJob(t, l, j.ID), wins)
		if t.Failed() {
			t.Fatalf("round %d from %s", i, from)
		}
	}
	ends := map[job.ID]int{}
	for _, e := range events(t, l, store.Viewer{All: true}) {
		if e.Type == string(job.Done) {
			ends[e.Job]++
		}
	}
	for id, n := range ends {
		if n != 1 {
			t.Errorf("job %s ended %d times", id, n)
		}
	}
	if len(ends) != rounds {
		t.Errorf("%d of %d jobs ended", len(ends), rounds)
	}
}

func checkOneEnd(t *testing.T, j job.Job, wins []bool) {
	won := 0
	for _, w := range wins {
		if w {
			won++
		}
	}
	if won != 1 || j.State != job.Done {
		t.Errorf("%d winners, job is %s", won, j.State)
		return
	}
	want := job.Success
	if wins[0] || wins[1] {
		want = job.Cancelled
	}
	if j.Outcome.Status != want {
		t.Errorf("outcome %s, the winner wrote %s", j.Outcome.Status, want)
	}
}

func cancelRacesClaim(t *testing.T, l store.Ledger) {
	for range 200 {
		j := Admit(t, l, NewJob(t, 1000))
		var claimed, ended bool
		parallel(t, 2, func(who int) {
			if who == 0 {
				_, err := l.Claim(t.Context(), j.ID, store.Claim{Node: Node, Epoch: 1, NowMS: Start})
				claimed = err == nil
				return
			}
			_, ended, _ = l.Cancel(t.Context(), j.ID, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
		})
		got := mustJob(t, l, j.ID)
		if claimed == ended || claimed && got.CancelReason == "" {
			t.Fatalf("claimed %v, ended %v, %s, reason %q", claimed, ended, got.State, got.CancelReason)
		}
	}
}
