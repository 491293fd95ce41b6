package ledgertest

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// statePairs tries every transition on a job in every state.
func statePairs(t *testing.T, l store.Ledger) {
	for _, at := range job.States() {
		for _, from := range job.States() {
			for _, to := range job.States() {
				t.Run(string(at)+": "+string(from)+" → "+string(to), func(t *testing.T) {
					j := Admit(t, l, NewJob(t, 1000))
					Bring(t, l, j, at)
					tryPair(t, l, j, at, from, to)
				})
			}
		}
	}
}

func tryPair(t *testing.T, l store.Ledger, j job.Job, at, from, to job.State) {
	err := transit(t, l, j, from, to)
	var illegal *job.TransitionError
	legal := job.CheckTransition(from, to) == nil
	want := at
	switch {
	case !legal && !errors.As(err, &illegal):
		t.Errorf("an illegal transition: %v", err)
	case legal && at != from && !errors.Is(err, store.ErrFenced):
		t.Errorf("a job that is %s: %v, want fenced", at, err)
	case legal && at == from && err != nil:
		t.Error(err)
	case legal && at == from:
		want = to
	}
	if got := mustJob(t, l, j.ID).State; got != want {
		t.Errorf("the job is %s, want %s", got, want)
	}
}

// transit takes the way that leads to a state.
func transit(t *testing.T, l store.Ledger, j job.Job, from, to job.State) error {
	switch {
	case from == job.Queued && to == job.Starting:
		_, err := l.Claim(t.Context(), j.ID, store.Claim{Node: Node, Epoch: 1, NowMS: Start})
		return err
	case to == job.Done:
		return l.Finish(t.Context(), Success(j, from))
	}
	return l.Move(t.Context(), store.Move{ID: j.ID, Attempt: 1, From: from, To: to, NowMS: Start})
}

func fencing(t *testing.T, l store.Ledger) {
	j := Admit(t, l, NewJob(t, 1000))
	Bring(t, l, j, job.Running)
	stale := store.Move{ID: j.ID, Attempt: 2, From: job.Running, To: job.Finishing, NowMS: Start}
	gone := store.Move{ID: NewJob(t, 1).ID, Attempt: 1, From: job.Running, To: job.Finishing, NowMS: Start}
	end := Success(j, job.Running)
	end.Attempt = 2
	_, errClaim := l.Claim(t.Context(), gone.ID, store.Claim{Node: Node, Epoch: 1, NowMS: Start})
	for name, err := range map[string]error{
		"a move in another attempt":   l.Move(t.Context(), stale),
		"a move of a job that is not": l.Move(t.Context(), gone),
		"a finish in another attempt": l.Finish(t.Context(), end),
		"a claim of a job not there":  errClaim,
	} {
		if !errors.Is(err, store.ErrFenced) {
			t.Errorf("%s: %v, want fenced", name, err)
		}
	}
	for name, m := range map[string]store.Move{
		"to starting": {ID: j.ID, Attempt: 1, From: job.Queued, To: job.Starting, NowMS: Start},
		"to done":     {ID: j.ID, Attempt: 1, From: job.Running, To: job.Done, NowMS: Start},
		"no attempt":  {ID: j.ID, From: job.Running, To: job.Finishing, NowMS: Start},
		"no time":     {ID: j.ID, Attempt: 1, From: job.Running, To: job.Finishing},
	} {
		if err := l.Move(t.Context(), m); err == nil || errors.Is(err, store.ErrFenced) {
			t.Errorf("a move %s: %v, want refused", name, err)
		}
	}
	if got := mustJob(t, l, j.ID); got.State != job.Running {
		t.Errorf("the job is %s", got.State)
	}
}

func claimOnce(t *testing.T, l store.Ledger) {
	j := Admit(t, l, NewJob(t, 1000))
	var won atomic.Int32
	parallel(t, 20, func(i int) {
		got, err := l.Claim(t.Context(), j.ID, store.Claim{Node: Node, Epoch: int64(i + 1), NowMS: Start + 1})
		switch {
		case err == nil:
			won.Add(1)
			if got.State != job.Starting || got.Epoch != int64(i+1) || got.Node != Node {
				t.Errorf("claimed: %s on %s in epoch %d", got.State, got.Node, got.Epoch)
			}
		case !errors.Is(err, store.ErrFenced):
			t.Error(err)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d claims won", won.Load())
	}
}

func unclaim(t *testing.T, l store.Ledger) {
	j := Admit(t, l, NewJob(t, 1000))
	younger := Admit(t, l, NewJob(t, 1000))
	Bring(t, l, j, job.Starting)
	if err := l.Move(t.Context(), store.Move{ID: j.ID, Attempt: 1, From: job.Starting, To: job.Queued, NowMS: Start + 5}); err != nil {
		t.Fatal(err)
	}
	got := mustJob(t, l, j.ID)
	if got.State != job.Queued || got.Attempt != 2 || got.Times != (job.Times{Queued: Start}) {
		t.Errorf("after unclaim: %s, attempt %d, times %+v", got.State, got.Attempt, got.Times)
	}
	q, err := l.Queued(t.Context())
	if err != nil || len(q) != 2 || q[0].ID != j.ID || q[0].Attempt != 2 || q[1].ID != younger.ID {
		t.Errorf("queue %+v, %v", q, err)
	}
	if err := l.Finish(t.Context(), Success(j, job.Queued)); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the first attempt finished after unclaim: %v", err)
	}
	if got, err := l.Claim(t.Context(), j.ID, store.Claim{Node: Node, Epoch: 2, NowMS: Start + 6}); err != nil || got.Attempt != 2 {
		t.Errorf("claimed again: attempt %d, %v", got.Attempt, err)
	}
}

func finishOnce(t *testing.T, l store.Ledger) {
	for _, from := range []job.State{job.Queued, job.Starting, job.Running, job.Waiting, job.Finishing} {
		j := Admit(t, l, NewJob(t, 1000))
		Bring(t, l, j, from)
		f := Success(j, from)
		if err := l.Finish(t.Context(), f); err != nil {
			t.Fatalf("from %s: %v", from, err)
		}
		want := mustJob(t, l, j.ID)
		if diff := cmp.Diff(&f.Outcome, want.Outcome) + cmp.Diff(&f.Result, want.Result); diff != "" || want.State != job.Done {
			t.Errorf("from %s: %s %s", from, want.State, diff)
		}
		f.Outcome = job.Outcome{Status: job.Failed}
		if err := l.Finish(t.Context(), f); !errors.Is(err, store.ErrFenced) {
			t.Errorf("from %s, a second end: %v", from, err)
		}
		if diff := cmp.Diff(want, mustJob(t, l, j.ID)); diff != "" {
			t.Errorf("from %s, a second end changed the job:\n%s", from, diff)
		}
	}
}

func finishTimes(t *testing.T, l store.Ledger) {
	j := Admit(t, l, NewJob(t, 1000))
	Bring(t, l, j, job.Starting)
	if err := l.Move(t.Context(), store.Move{ID: j.ID, Attempt: 1, From: job.Starting, To: job.Running, NowMS: Start + 20, Prepared: Start + 10}); err != nil {
		t.Fatal(err)
	}
	if got := mustJob(t, l, j.ID).Times; got != (job.Times{Queued: Start, Prepared: Start + 10, Started: Start + 20}) {
		t.Errorf("running: %+v", got)
	}
	f := Success(j, job.Running)
	f.Times = job.Times{Started: Start + 21, Settled: Start + 40}
	if err := l.Finish(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	want := job.Times{Queued: Start, Prepared: Start + 10, Started: Start + 21, Finished: Start + 40, Settled: Start + 40}
	if got := mustJob(t, l, j.ID).Times; got != want {
		t.Errorf("done: %+v, want %+v", got, want)
	}
	late := Admit(t, l, NewJob(t, 1000))
	for name, spoil := range map[string]func(*store.Finish){
		"without times":   func(f *store.Finish) { f.Times = job.Times{} },
		"without status":  func(f *store.Finish) { f.Outcome.Status = "" },
		"without attempt": func(f *store.Finish) { f.Attempt = 0 },
	} {
		f := Success(late, job.Queued)
		spoil(&f)
		if err := l.Finish(t.Context(), f); err == nil || errors.Is(err, store.ErrFenced) {
			t.Errorf("an end %s: %v, want refused", name, err)
		}
	}
}
