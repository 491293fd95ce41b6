package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// BenchmarkAdmit measures durable admissions. The directory lies in TMPDIR: point it at a real disk.
func BenchmarkAdmit(b *testing.B) {
	for _, goroutines := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("from %d goroutines", goroutines), func(b *testing.B) {
			s := open(b, b.TempDir())
			jobs := make([]job.Job, b.N)
			for i := range jobs {
				jobs[i] = ledgertest.NewJob(b, uint32(1000+i%8))
			}
			took := make([]time.Duration, b.N)
			b.ResetTimer()
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					for i := g; i < b.N; i += goroutines {
						began := time.Now()
						if _, _, err := s.Admit(b.Context(), ledgertest.Admission(jobs[i])); err != nil {
							b.Error(err)
						}
						took[i] = time.Since(began)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "admits/s")
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkAdmitBudgeted measures durable admissions of roots with a budget of five dimensions and caps, and of children
// that draw from it.
func BenchmarkAdmitBudgeted(b *testing.B) {
	limits := budget.Limits{budget.WallMS: 1 << 40, budget.CPUMS: 1 << 40, budget.OutputBytes: 1 << 40, budget.ArtifactBytes: 1 << 40, budget.InputTokens: 1 << 40}
	caps := store.TreeCaps{MaxJobs: 1 << 30, MaxLive: 1 << 30}
	for _, kind := range []string{"roots", "children"} {
		for _, goroutines := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s from %d goroutines", kind, goroutines), func(b *testing.B) {
				s := open(b, b.TempDir())
				asks := make([]store.Admission, b.N)
				roots := make([]job.Job, 8)
				for i := range roots {
					roots[i] = ledgertest.NewJob(b, uint32(1000+i))
					if _, _, err := s.Admit(b.Context(), budgeted(roots[i], limits)); err != nil {
						b.Fatal(err)
					}
					ledgertest.Bring(b, s, roots[i], job.Running)
				}
				for i := range asks {
					if kind == "roots" {
						asks[i] = budgeted(ledgertest.NewJob(b, uint32(1000+i%8)), limits)
					} else {
						asks[i] = budgeted(ledgertest.NewChild(b, roots[i%8]), budget.Limits{budget.CPUMS: 1000, budget.InputTokens: 1000})
					}
					asks[i].Caps = caps
				}
				b.ResetTimer()
				var wg sync.WaitGroup
				for g := range goroutines {
					wg.Go(func() {
						for i := g; i < b.N; i += goroutines {
							if _, _, err := s.Admit(b.Context(), asks[i]); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "admits/s")
			})
		}
	}
}

// fill admits jobs and ends them where done.
func fill(tb testing.TB, s *store.SQLite, n int, done bool) []job.ID {
	tb.Helper()
	out := make([]job.ID, n)
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			for i := g; i < n; i += 64 {
				j := ledgertest.NewJob(tb, uint32(1000+i%4))
				out[i] = j.ID
				if i%10 == 0 {
					j.Spec.Name, j.Spec.Labels = fmt.Sprint("job-", i), map[string]string{"team": "x"}
				}
				_, _, err := s.Admit(tb.Context(), ledgertest.Admission(j))
				if err == nil && done {
					err = s.Finish(tb.Context(), ledgertest.Success(j, job.Queued))
				}
				if err != nil {
					tb.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return out
}

// BenchmarkQueue measures the scheduler's reads and claims with a long queue.
func BenchmarkQueue(b *testing.B) {
	s := open(b, b.TempDir())
	fill(b, s, 10_000, false)
	b.Run("Queued of 10000", func(b *testing.B) {
		for b.Loop() {
			if q, err := s.Queued(b.Context()); err != nil || len(q) < 1000 {
				b.Fatal(len(q), err)
			}
		}
	})
	q, err := s.Queued(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Claim among 10000", func(b *testing.B) {
		for b.Loop() {
			if len(q) == 0 {
				b.Skip("the queue is empty")
			}
			if _, err := s.Claim(b.Context(), q[0].ID, store.Claim{Node: ledgertest.Node, Epoch: 1, NowMS: 1}); err != nil {
				b.Fatal(err)
			}
			q = q[1:]
		}
	})
}

// BenchmarkManyKept measures opening and reading with 100 000 finished jobs.
func BenchmarkManyKept(b *testing.B) {
	dir := b.TempDir()
	s := store.New(options(dir))
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	ids := fill(b, s, 100_000, true)
	fill(b, s, 100, false)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("Open and Close", func(b *testing.B) {
		for b.Loop() {
			s := store.New(options(dir))
			if err := s.Open(b.Context()); err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	s = open(b, dir)
	read := func(name string, fn func() error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := fn(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	list := func(v store.Viewer, f store.Filter) func() error {
		return func() error { _, err := s.Jobs(b.Context(), v, f); return err }
	}
	own, all := store.Viewer{Principal: "uid:1000"}, store.Viewer{All: true}
	open := []job.State{job.Queued, job.Running}
	read("Job", func() error { _, err := s.Job(b.Context(), ids[500]); return err })
	read("Queued", func() error { _, err := s.Queued(b.Context()); return err })
	read("Counts", func() error { _, err := s.Counts(b.Context()); return err })
	read("Resolve a prefix", func() error { _, err := s.Resolve(b.Context(), all, string(ids[500][:35])); return err })
	read("Resolve a name", func() error { _, err := s.Resolve(b.Context(), own, "job-500"); return err })
	read("list 100", list(own, store.Filter{}))
	read("list open", list(own, store.Filter{States: open}))
	read("list open of all", list(all, store.Filter{States: open}))
	read("list a label", list(own, store.Filter{Labels: map[string]string{"team": "x"}}))
	read("list a rare name", list(own, store.Filter{Name: "job-500"}))
	read("list a tree", list(own, store.Filter{Root: ids[500]}))
	read("list the oldest", list(own, store.Filter{Before: ids[500]}))
	read("events", func() error { _, err := s.Events(b.Context(), own, 1000, 100); return err })
}
