package job_test

import (
	"errors"
	"testing"

	"sandboxd/internal/job"
)

func TestTransitionsOverAllPairs(t *testing.T) {
	legal := map[[2]job.State]bool{
		{job.Queued, job.Starting}:    true,
		{job.Queued, job.Done}:        true,
		{job.Starting, job.Running}:   true,
		{job.Starting, job.Queued}:    true, // unclaim
		{job.Starting, job.Finishing}: true,
		{job.Starting, job.Done}:      true,
		{job.Running, job.Waiting}:    true,
		{job.Running, job.Finishing}:  true,
		{job.Running, job.Done}:       true,
		{job.Waiting, job.Running}:    true,
		{job.Waiting, job.Finishing}:  true,
		{job.Waiting, job.Done}:       true,
		{job.Finishing, job.Done}:     true,
	}
	all := append(job.States(), "", "paused", "QUEUED")
	for _, from := range all {
		for _, to := range all {
			err := job.CheckTransition(from, to)
			if (err == nil) != legal[[2]job.State{from, to}] {
				t.Errorf("%q → %q: %v", from, to, err)
			}
			var refused *job.TransitionError
			if err != nil && (!errors.As(err, &refused) || refused.From != from || refused.To != to) {
				t.Errorf("%q → %q: %#v is not the typed error", from, to, err)
			}
		}
	}
}

func TestDoneIsSticky(t *testing.T) {
	for _, to := range job.States() {
		if job.CheckTransition(job.Done, to) == nil {
			t.Errorf("done → %s", to)
		}
	}
}

func TestStatesAreKnownAndLiveOnesHoldAContainer(t *testing.T) {
	live := map[job.State]bool{job.Starting: true, job.Running: true, job.Waiting: true, job.Finishing: true}
	if len(job.States()) != 6 {
		t.Errorf("%d states", len(job.States()))
	}
	for _, s := range job.States() {
		if !s.Valid() || s.Live() != live[s] {
			t.Errorf("%s: valid %v, live %v", s, s.Valid(), s.Live())
		}
	}
	for _, s := range []job.State{"", "Done", "gone"} {
		if s.Valid() || s.Live() {
			t.Errorf("%q is taken for a state", s)
		}
	}
}
