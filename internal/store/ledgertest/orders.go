package ledgertest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

func denied(t *testing.T, l store.Ledger, j job.Job, nowMS int64) int {
	t.Helper()
	n, err := l.Deny(t.Context(), store.Denial{Parent: j.ID, Code: job.CodeNotSubset, Field: "memory", Detail: "asked too much", NowMS: nowMS})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// toldDenials are the events of denials in a tree.
func toldDenials(t *testing.T, l store.Ledger, root job.Job) (out []store.Event) {
	for _, e := range events(t, l, store.Viewer{Job: root.ID}) {
		if e.Type == "denied" {
			out = append(out, e)
		}
	}
	return out
}

func denials(t *testing.T, l store.Ledger) {
	root := running(t, l, NewJob(t, 1000))
	child := running(t, l, NewChild(t, root))
	other := running(t, l, NewJob(t, 1000))
	for i := range 30 {
		if n := denied(t, l, []job.Job{root, child}[i%2], Start+int64(i)); n != i+1 {
			t.Fatalf("denial %d is counted as %d", i+1, n)
		}
	}
	if n := denied(t, l, other, Start); n != 1 {
		t.Errorf("another tree's count is %d", n)
	}
	got := toldDenials(t, l, root)
	if len(got) != store.MaxDeniedPerSecond {
		t.Fatalf("%d of 30 in one second are told", len(got))
	}
	want := map[string]string{"code": "not_subset", "field": "memory", "detail": "asked too much", "total": "2"}
	if diff := cmp.Diff(want, got[1].Payload); diff != "" || got[1].Job != child.ID || got[1].TimeMS != Start+1 {
		t.Errorf("%+v\n%s", got[1], diff)
	}
	for i := range 1100 {
		denied(t, l, root, Start+int64(1+i/20)*1000)
	}
	if got := toldDenials(t, l, root); len(got) != store.MaxDeniedTold {
		t.Errorf("%d in all are told", len(got))
	}
	if got := tree(t, l, root.ID); got.Denied != 1130 {
		t.Errorf("%d are counted", got.Denied)
	}
	long := store.Denial{Parent: other.ID, Code: job.CodeInvalid, Detail: strings.Repeat("ä", 10_000), NowMS: Start}
	if _, err := l.Deny(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if got := toldDenials(t, l, other)[1].Payload["detail"]; len(got) > 520 || !strings.HasPrefix(got, "ää") {
		t.Errorf("a detail of %d bytes is told", len(got))
	}
	_, err := l.Deny(t.Context(), store.Denial{Parent: NewJob(t, 1).ID, Code: job.CodeInvalid, NowMS: Start})
	refused(t, err, job.CodeNotFound)
	if _, err := l.Deny(t.Context(), store.Denial{Parent: root.ID, NowMS: Start}); err == nil {
		t.Error("a denial without code")
	}
}

func freezes(t *testing.T, l store.Ledger) {
	ctx := t.Context()
	root := running(t, l, NewJob(t, 1000))
	other := running(t, l, NewJob(t, 1000))
	keyed := Admission(NewJob(t, 1000))
	keyed.Job.IdempotencyKey = "k"
	mustAdmit(t, l, keyed)
	builder := func(j job.Job) job.Job { j.Spec.Profile = "builder"; return j }
	for _, test := range []struct {
		f      store.Freeze
		words  string
		frozen []job.Job
		free   []job.Job
	}{
		{store.Freeze{Scope: store.FreezeAll}, "everything", []job.Job{NewJob(t, 1), NewChild(t, root), builder(NewJob(t, 1))}, nil},
		{store.Freeze{Scope: store.FreezeProfile, Name: "builder"}, "profile builder", []job.Job{builder(NewJob(t, 1)), builder(NewChild(t, root))}, []job.Job{NewJob(t, 1), NewChild(t, root)}},
		{store.Freeze{Scope: store.FreezeTree, Name: string(root.ID)}, "tree " + string(root.ID), []job.Job{NewChild(t, root), builder(NewChild(t, root))}, []job.Job{NewJob(t, 1), NewChild(t, other)}},
	} {
		test.f.By, test.f.NowMS = "uid:0", Start
		if err := l.Freeze(ctx, test.f); err != nil {
			t.Fatal(err)
		}
		for _, j := range test.frozen {
			_, _, err := l.Admit(ctx, Admission(j))
			refused(t, err, job.CodeFrozen, test.words)
		}
		for _, j := range test.free {
			Admit(t, l, j)
		}
		again := Admission(NewJob(t, 1000))
		again.Job.IdempotencyKey = "k"
		if j, created, err := l.Admit(ctx, again); err != nil || created || j.ID != keyed.Job.ID {
			t.Errorf("a repeat of what was admitted: %v", err)
		}
		if err := l.Thaw(ctx, test.f); err != nil {
			t.Fatal(err)
		}
		for _, j := range test.frozen {
			Admit(t, l, j)
		}
	}
	if err := l.Freeze(ctx, store.Freeze{Scope: store.FreezeTree, Name: "nope", By: "uid:0", NowMS: Start}); job.CodeOf(err) != job.CodeNotFound {
		t.Errorf("a tree that is not there: %v", err)
	}
}

func freezeTwice(t *testing.T, l store.Ledger) {
	root := Admit(t, l, NewJob(t, 1000))
	first := []store.Freeze{
		{Scope: store.FreezeAll, By: "uid:0", NowMS: Start}, {Scope: store.FreezeProfile, Name: "a", By: "uid:1", NowMS: Start + 1},
		{Scope: store.FreezeProfile, Name: "b", By: "uid:0", NowMS: Start}, {Scope: store.FreezeTree, Name: string(root.ID), By: "uid:0", NowMS: Start},
	}
	for _, f := range first {
		for range 2 {
			if err := l.Freeze(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			f.By, f.NowMS = "uid:9", Start+9
		}
	}
	kept := func(want []store.Freeze) {
		t.Helper()
		got, err := l.Freezes(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	kept(first)
	for range 2 {
		if err := l.Thaw(t.Context(), store.Freeze{Scope: store.FreezeProfile, Name: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	kept([]store.Freeze{first[0], first[2], first[3]})
	for _, f := range []store.Freeze{{}, {Scope: "All"}, {Scope: store.FreezeAll, Name: "x"}, {Scope: store.FreezeProfile}, {Scope: store.FreezeTree}} {
		f.By, f.NowMS = "uid:0", Start
		if l.Freeze(t.Context(), f) == nil || l.Thaw(t.Context(), f) == nil {
			t.Errorf("%+v is taken", f)
		}
	}
	if l.Freeze(t.Context(), store.Freeze{Scope: store.FreezeAll, NowMS: Start}) == nil {
		t.Error("a freeze by nobody")
	}
}
