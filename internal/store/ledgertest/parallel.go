package ledgertest

import (
	"sync"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// parallel runs fn n times at once, released together, and waits.
func parallel(t *testing.T, n int, fn func(i int)) {
	t.Helper()
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			fn(i)
		})
	}
	close(gate)
	wg.Wait()
}

func mustCancel(t *testing.T, l store.Ledger, j job.Job, c store.Cancel) (job.Job, bool) {
	t.Helper()
	got, ended, err := l.Cancel(t.Context(), j.ID, c)
	if err != nil {
		t.Fatalf("cancel: %v", err)
	}
	return got, ended
}

func mustJob(t *testing.T, l store.Reader, id job.ID) job.Job {
	t.Helper()
	j, err := l.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func list(t *testing.T, l store.Reader, v store.Viewer, f store.Filter) []job.Job {
	t.Helper()
	jobs, err := l.Jobs(t.Context(), v, f)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func ids(jobs []job.Job) []job.ID {
	out := []job.ID{}
	for _, j := range jobs {
		out = append(out, j.ID)
	}
	return out
}
