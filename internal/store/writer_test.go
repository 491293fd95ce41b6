package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// TestAnErrorOfTheContextMeansNothingWasWritten lets callers give up at random moments.
func TestAnErrorOfTheContextMeansNothingWasWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var mu sync.Mutex
	admitted, gaveUp := map[job.ID]bool{}, 0
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(6000))*time.Microsecond)
				j := ledgertest.NewJob(t, 1000)
				_, _, err := s.Admit(ctx, ledgertest.Admission(j))
				cancel()
				mu.Lock()
				switch {
				case err == nil:
					admitted[j.ID] = true
				case errors.Is(err, context.DeadlineExceeded):
					gaveUp++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	q, err := s.Queued(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range q {
		if !admitted[item.ID] {
			t.Errorf("job %s was refused and is there", item.ID)
		}
	}
	if len(q) != len(admitted) {
		t.Errorf("%d jobs, %d admitted", len(q), len(admitted))
	}
	t.Logf("%d admitted, %d gave up", len(admitted), gaveUp)
}

// TestCloseWhileWriting closes under load: what was acknowledged is there after a reopen.
func TestCloseWhileWriting(t *testing.T) {
	dir := t.TempDir()
	s := store.New(options(dir))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var admitted []job.ID
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			for {
				j := ledgertest.NewJob(t, 1000)
				_, _, err := s.Admit(t.Context(), ledgertest.Admission(j))
				if err != nil {
					if job.CodeOf(err) != job.CodeUnavailable {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				admitted = append(admitted, j.ID)
				mu.Unlock()
			}
		})
	}
	time.Sleep(30 * time.Millisecond)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	q, err := open(t, dir).Queued(t.Context())
	if err != nil || len(q) != len(admitted) {
		t.Errorf("%d jobs after reopening, %d were acknowledged, %v", len(q), len(admitted), err)
	}
}

func TestChangedTellsOfEvents(t *testing.T) {
	s := open(t, t.TempDir())
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	before := s.Changed()
	if _, err := s.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := ledgertest.Admission(ledgertest.NewJob(t, 1000))
	a.MaxQueuedBytesPerUID = 10
	if _, _, err := s.Admit(t.Context(), a); job.CodeOf(err) != job.CodeQuota {
		t.Errorf("a request of more than 10 bytes: %v", err)
	}
	if closed(before) {
		t.Error("told of a commit without events")
	}
	ledgertest.Admit(t, s, ledgertest.NewJob(t, 1000))
	if !closed(before) || closed(s.Changed()) {
		t.Error("an admission was not told once")
	}
}
