package store_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// keepAll is a policy under which nothing goes.
var keepAll = store.PrunePolicy{MaxPerOwner: math.MaxInt, MaxBytesPerOwner: math.MaxInt64, MaxEventsPerOwner: math.MaxInt32}

// ended admits a job and ends it at a time, n milliseconds after the start of the suite's clock.
func ended(t *testing.T, s *store.SQLite, j job.Job, n int64) job.ID {
	t.Helper()
	ledgertest.Admit(t, s, j)
	f := ledgertest.Success(j, job.Queued)
	f.Times = job.Times{Settled: ledgertest.Start + n}
	if err := s.Finish(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	return j.ID
}

// left are the jobs of the list that are still there.
func left(t *testing.T, s *store.SQLite, ids []job.ID) (out []int) {
	t.Helper()
	for i, id := range ids {
		_, err := s.Job(t.Context(), id)
		if err == nil {
			out = append(out, i)
		} else if job.CodeOf(err) != job.CodeNotFound {
			t.Error(err)
		}
	}
	return out
}

func prune(t *testing.T, s *store.SQLite, p store.PrunePolicy) []job.ID {
	t.Helper()
	ids, err := s.Prune(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestPruneBounds(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*store.PrunePolicy)
		left []int // of 10 jobs of two owners in turn, job i ended at Start+i
	}{
		"nothing":         {func(*store.PrunePolicy) {}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		"by age":          {func(p *store.PrunePolicy) { p.OlderThanMS = ledgertest.Start + 7 }, []int{7, 8, 9}},
		"by number":       {func(p *store.PrunePolicy) { p.MaxPerOwner = 2 }, []int{6, 7, 8, 9}},
		"by bytes":        {func(p *store.PrunePolicy) { p.MaxBytesPerOwner = 1 }, nil},
		"by both":         {func(p *store.PrunePolicy) { p.MaxPerOwner, p.OlderThanMS = 3, ledgertest.Start+5 }, []int{5, 6, 7, 8, 9}},
		"some at a time":  {func(p *store.PrunePolicy) { p.OlderThanMS, p.Limit = ledgertest.Start+7, 2 }, []int{2, 3, 4, 5, 6, 7, 8, 9}},
		"all that is old": {func(p *store.PrunePolicy) { p.OlderThanMS = math.MaxInt64 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Cleanup(func() { audit(t, dir) })
			s := open(t, dir)
			var ids []job.ID
			for i := range 10 {
				ids = append(ids, ended(t, s, ledgertest.NewJob(t, uint32(1000+i%2)), int64(i)))
			}
			live := ledgertest.Admit(t, s, ledgertest.NewJob(t, 1000))
			p := keepAll
			test.set(&p)
			gone := prune(t, s, p)
			if got := left(t, s, ids); !slices.Equal(got, test.left) || len(gone) != 10-len(got) {
				t.Errorf("left %v, want %v; %d reported gone", got, test.left, len(gone))
			}
			if len(left(t, s, []job.ID{live.ID})) != 1 {
				t.Error("a live job is gone")
			}
		})
	}
}

func TestPruneWholeTrees(t *testing.T) {
	dir := t.TempDir()
	t.Cleanup(func() { audit(t, dir) })
	s := open(t, dir)
	root := ledgertest.NewJob(t, 1000)
	root.IdempotencyKey, root.Spec.Labels = "key", map[string]string{"a": "b"}
	root.Spec.StdinData = make([]byte, 10_000)
	ledgertest.Admit(t, s, root)
	ledgertest.Bring(t, s, root, job.Running)
	ids := []job.ID{root.ID}
	for range 3 {
		ids = append(ids, ended(t, s, ledgertest.NewChild(t, root), 1))
	}
	if err := s.Journal(t.Context(), ids[1], 1, "handed_over", 1); err != nil {
		t.Fatal(err)
	}
	p := keepAll
	p.OlderThanMS = math.MaxInt64
	if gone := prune(t, s, p); len(gone) != 0 {
		t.Errorf("children of a running job are gone: %v", gone)
	}
	if err := s.Finish(t.Context(), ledgertest.Success(root, job.Running)); err != nil {
		t.Fatal(err)
	}
	p.OlderThanMS = ledgertest.Start + 4 // when the root settled
	if gone := prune(t, s, p); len(gone) != 0 {
		t.Errorf("gone before its time: %v", gone)
	}
	p.OlderThanMS++
	gone := prune(t, s, p)
	slices.Sort(gone)
	if !slices.Equal(gone, ids) {
		t.Errorf("gone %v, want %v", gone, ids)
	}
	if was, err := s.Journaled(t.Context(), ids[1], 1, "handed_over"); err != nil || was {
		t.Errorf("the journal of a job that is gone: %v, %v", was, err)
	}
	again := ledgertest.NewJob(t, 1000)
	again.IdempotencyKey = "key"
	ledgertest.Admit(t, s, again) // the key went with its job
}

func TestPruneEventsFromTheBeginning(t *testing.T) {
	src := t.TempDir()
	s := store.New(options(src))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 600 {
		j := ledgertest.NewJob(t, 1000)
		j.Times.Queued += int64(i)
		ended(t, s, j, int64(i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		set   func(*store.PrunePolicy)
		first int64 // kept, of 1200
	}{
		"none":      {func(*store.PrunePolicy) {}, 1},
		"by age":    {func(p *store.PrunePolicy) { p.OlderThanMS = ledgertest.Start + 500 }, 1001},
		"by number": {func(p *store.PrunePolicy) { p.MaxEventsPerOwner = 10 }, 1191},
		"all":       {func(p *store.PrunePolicy) { p.OlderThanMS = math.MaxInt64 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Cleanup(func() { audit(t, dir) })
			copyFile(t, filepath.Join(src, "state.db"), filepath.Join(dir, "state.db"), -1)
			s := open(t, dir)
			p := keepAll
			test.set(&p)
			prune(t, s, p)
			v := store.Viewer{Principal: "uid:1000"}
			got, err := s.Events(t.Context(), v, 0, 1)
			if err != nil || len(got) != min(1, int(test.first)) || len(got) == 1 && got[0].Seq != test.first {
				t.Errorf("the first event is %+v, %v; want %d", got, err, test.first)
			}
			ledgertest.Admit(t, s, ledgertest.NewJob(t, 1000))
			if got, err := s.Events(t.Context(), v, 1200, 10); err != nil || len(got) != 1 || got[0].Seq != 1201 {
				t.Errorf("the next event is %+v, %v; want 1201", got, err)
			}
		})
	}
}

func TestPruneRefusesAnUnboundedPolicy(t *testing.T) {
	s := open(t, t.TempDir())
	for i, spoil := range []func(*store.PrunePolicy){
		func(p *store.PrunePolicy) { p.MaxPerOwner = 0 }, func(p *store.PrunePolicy) { p.MaxBytesPerOwner = 0 },
		func(p *store.PrunePolicy) { p.MaxEventsPerOwner = 0 }, func(p *store.PrunePolicy) { p.OlderThanMS = -1 },
	} {
		p := keepAll
		spoil(&p)
		if _, err := s.Prune(t.Context(), p); err == nil || errors.Is(err, store.ErrFenced) {
			t.Error(fmt.Sprint("policy ", i, ": ", err))
		}
	}
}
