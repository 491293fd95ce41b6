package ledgertest

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// refused wants a code, and words in the refusal.
func refused(t *testing.T, err error, code job.Code, words ...string) {
	t.Helper()
	if err == nil || job.CodeOf(err) != code {
		t.Errorf("%v, want code %s", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// running admits a job and lets it run.
func running(t *testing.T, l store.Ledger, j job.Job) job.Job {
	t.Helper()
	j = Admit(t, l, j)
	Bring(t, l, j, job.Running)
	return j
}

// done ends a job from where it runs.
func done(t *testing.T, l store.Ledger, j job.Job) {
	t.Helper()
	if err := l.Finish(t.Context(), Success(j, job.Running)); err != nil {
		t.Fatal(err)
	}
}

func tree(t *testing.T, l store.Ledger, root job.ID) store.Tree {
	t.Helper()
	tree, err := l.Tree(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// capped admits with caps on its tree.
func capped(t *testing.T, l store.Ledger, j job.Job, ever, live int) error {
	t.Helper()
	a := Admission(j)
	a.Caps = store.TreeCaps{MaxJobs: ever, MaxLive: live}
	_, _, err := l.Admit(t.Context(), a)
	return err
}

func caps(t *testing.T, l store.Ledger) {
	root := NewJob(t, 1000)
	if err := capped(t, l, root, 1, 1); err != nil {
		t.Fatal(err)
	}
	Bring(t, l, root, job.Running)
	refused(t, capped(t, l, NewChild(t, root), 1, 5), job.CodeTreeLimit, "1 of at most 1 jobs", "max_tree_jobs")
	refused(t, capped(t, l, NewChild(t, root), 5, 1), job.CodeTreeLimit, "1 of at most 1 live", "max_tree_live")
	child := NewChild(t, root)
	if err := capped(t, l, child, 3, 2); err != nil {
		t.Fatal(err)
	}
	Bring(t, l, child, job.Running)
	refused(t, capped(t, l, NewChild(t, child), 3, 2), job.CodeTreeLimit, "2 of at most 2 live")
	done(t, l, child)
	if err := capped(t, l, NewChild(t, root), 3, 2); err != nil {
		t.Errorf("after a child ended: %v", err)
	}
	refused(t, capped(t, l, NewChild(t, root), 3, 9), job.CodeTreeLimit, "3 of at most 3 jobs")
	if got, want := tree(t, l, root.ID), (store.Tree{Root: root.ID, Owner: root.Owner, Version: 4, JobsEver: 3, JobsLive: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := capped(t, l, NewJob(t, 1000), 1, 0); err == nil || job.CodeOf(err) != job.CodeInternal {
		t.Errorf("half a cap: %v", err)
	}
	if _, err := l.Tree(t.Context(), child.ID); job.CodeOf(err) != job.CodeNotFound {
		t.Errorf("the tree of a child: %v", err)
	}
}

func capsConcurrent(t *testing.T, l store.Ledger) {
	root := running(t, l, NewJob(t, 1000))
	var admitted atomic.Int32
	parallel(t, 40, func(int) {
		c := NewChild(t, root)
		err := capped(t, l, c, 20, 7)
		switch {
		case err == nil:
			admitted.Add(1)
			mustCancel(t, l, c, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
		case job.CodeOf(err) != job.CodeTreeLimit:
			t.Error(err)
		}
		if got := tree(t, l, root.ID); got.JobsLive > 7 || got.JobsEver > 20 {
			t.Errorf("%+v", got)
		}
	})
	if got := tree(t, l, root.ID); got.JobsLive != 1 || got.JobsEver != 1+int(admitted.Load()) {
		t.Errorf("%+v after %d", got, admitted.Load())
	}
}

func childOfIdle(t *testing.T, l store.Ledger) {
	for _, s := range job.States() {
		j := Admit(t, l, NewJob(t, 1000))
		Bring(t, l, j, s)
		_, _, err := l.Admit(t.Context(), Admission(NewChild(t, j)))
		if s == job.Running || s == job.Waiting {
			if err != nil {
				t.Errorf("of one that is %s: %v", s, err)
			}
			continue
		}
		refused(t, err, job.CodeConflict, string(j.ID))
	}
}

func childOfEnding(t *testing.T, l store.Ledger) {
	root := running(t, l, NewJob(t, 1000))
	a := running(t, l, NewChild(t, root))
	b := running(t, l, NewChild(t, a))
	mustCancel(t, l, a, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
	for name, parent := range map[string]job.Job{"itself": a, "one below": b} {
		_, _, err := l.Admit(t.Context(), Admission(NewChild(t, parent)))
		t.Log(name)
		refused(t, err, job.CodeConflict, string(a.ID), "ending")
	}
	Admit(t, l, NewChild(t, root))
	if err := l.Move(t.Context(), store.Move{ID: root.ID, Attempt: 1, From: job.Running, To: job.Finishing, NowMS: Start}); err != nil {
		t.Fatal(err)
	}
	_, _, err := l.Admit(t.Context(), Admission(NewChild(t, b)))
	refused(t, err, job.CodeConflict, "ending")
}

func liveChildren(t *testing.T, l store.Ledger) {
	root := running(t, l, NewJob(t, 1000))
	child := running(t, l, NewChild(t, root))
	grandchild := Admit(t, l, NewChild(t, child))
	before := tree(t, l, root.ID)
	for _, j := range []job.Job{root, child} {
		if err := l.Finish(t.Context(), Success(j, job.Running)); !errors.Is(err, store.ErrLiveChildren) {
			t.Errorf("with a live child: %v", err)
		}
		if got := mustJob(t, l, j.ID); got.State != job.Running || got.Outcome != nil {
			t.Errorf("it is %s", got.State)
		}
	}
	if got := tree(t, l, root.ID); got != before {
		t.Errorf("the tree is %+v, was %+v", got, before)
	}
	mustCancel(t, l, grandchild, store.Cancel{Reason: job.ReasonParentEnd, NowMS: Start})
	done(t, l, child)
	done(t, l, root)
	if got := tree(t, l, root.ID); got.JobsLive != 0 || got.JobsEver != 3 {
		t.Errorf("%+v", got)
	}
}

// childRacesEnd: either the child is first and the parent cannot end, or the parent has ended and gets no child.
func childRacesEnd(t *testing.T, l store.Ledger) {
	for i := range 200 {
		root := running(t, l, NewJob(t, 1000))
		var end, child error
		parallel(t, 2, func(who int) {
			if who == 0 {
				end = l.Finish(t.Context(), Success(root, job.Running))
			} else {
				_, _, child = l.Admit(t.Context(), Admission(NewChild(t, root)))
			}
		})
		switch {
		case end == nil && job.CodeOf(child) == job.CodeConflict:
		case child == nil && errors.Is(end, store.ErrLiveChildren):
		default:
			t.Fatalf("round %d: the end %v, the child %v", i, end, child)
		}
	}
}

func descendants(t *testing.T, l store.Ledger) {
	jobs := family(t, l)
	read := func(name string, live bool) (out []job.ID) {
		d, err := l.Descendants(t.Context(), jobs[name].ID, live)
		if err != nil {
			t.Fatal(err)
		}
		return ids(d)
	}
	of := func(names string) (out []job.ID) {
		for _, n := range strings.Fields(names) {
			out = append(out, jobs[n].ID)
		}
		return out
	}
	for name, want := range map[string]string{"root": "bb aa b a", "a": "aa", "aa": "", "stranger": ""} {
		for _, live := range []bool{true, false} {
			if got := read(name, live); !slices.Equal(got, of(want)) {
				t.Errorf("of %s, live %v: %v, want %s", name, live, got, want)
			}
		}
	}
	done(t, l, jobs["bb"])
	if got := read("root", true); !slices.Equal(got, of("aa b a")) {
		t.Errorf("live: %v", got)
	}
	if got := read("root", false); !slices.Equal(got, of("bb aa b a")) {
		t.Errorf("all: %v", got)
	}
}
