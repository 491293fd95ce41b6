package ledgertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// family is a tree of two children with a grandchild each, and a stranger of the same owner; all are named.
func family(t *testing.T, l store.Ledger) map[string]job.Job {
	jobs := map[string]job.Job{}
	add := func(name, parent string) {
		j := NewJob(t, 1000)
		if parent != "" {
			j = NewChild(t, jobs[parent])
		}
		j.Spec.Name, j.Spec.Labels = name, map[string]string{"name": name, "all": "x"}
		jobs[name] = Admit(t, l, j)
		Bring(t, l, j, job.Running)
	}
	add("root", "")
	add("a", "root")
	add("b", "root")
	add("aa", "a")
	add("bb", "b")
	add("stranger", "")
	return jobs
}

// names of a listing, sorted.
func names(jobs []job.Job) string {
	var out []string
	for _, j := range jobs {
		out = append(out, j.Spec.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func jobsListDescendants(t *testing.T, l store.Ledger) {
	jobs := family(t, l)
	id := func(name string) job.ID { return jobs[name].ID }
	for _, test := range []struct {
		viewer string
		f      store.Filter
		want   string
	}{
		{"root", store.Filter{}, "a aa b bb root"},
		{"a", store.Filter{}, "a aa"},
		{"aa", store.Filter{}, "aa"},
		{"stranger", store.Filter{}, "stranger"},
		{"a", store.Filter{Name: "aa"}, "aa"},
		{"a", store.Filter{Name: "b"}, ""},
		{"a", store.Filter{Name: "root"}, ""},
		{"a", store.Filter{Root: id("root")}, "a aa"},
		{"a", store.Filter{Root: id("stranger")}, ""},
		{"a", store.Filter{Parent: id("a")}, "aa"},
		{"a", store.Filter{Parent: id("root")}, "a"},
		{"a", store.Filter{Parent: id("b")}, ""},
		{"root", store.Filter{States: []job.State{job.Running}}, "a aa b bb root"},
		{"root", store.Filter{States: []job.State{job.Done}}, ""},
		{"root", store.Filter{Labels: map[string]string{"all": "x", "name": "bb"}}, "bb"},
		{"a", store.Filter{Labels: map[string]string{"all": "x"}}, "a aa"},
		{"a", store.Filter{Labels: map[string]string{"name": "stranger"}}, ""},
		{"root", store.Filter{Before: id("b")}, "a root"},
		{"root", store.Filter{Limit: 1}, "bb"},
	} {
		if got := names(list(t, l, store.Viewer{Job: id(test.viewer)}, test.f)); got != test.want {
			t.Errorf("%s with %+v: %q, want %q", test.viewer, test.f, got, test.want)
		}
	}
	if got := list(t, l, store.Viewer{Job: "01900000-0000-7000-8000-000000000000"}, store.Filter{}); len(got) != 0 {
		t.Errorf("a job that never was sees %d", len(got))
	}
	// Whatever else the viewer claims to be.
	wide := store.Viewer{Job: id("aa"), Principal: jobs["aa"].Owner, All: true}
	if got := names(list(t, l, wide, store.Filter{})); got != "aa" {
		t.Errorf("a job that claims to be an admin sees %q", got)
	}
	if own, all := events(t, l, wide), events(t, l, store.Viewer{Job: id("aa")}); len(own) != len(all) {
		t.Errorf("and %d events instead of %d", len(own), len(all))
	}
}

func jobsResolveDescendants(t *testing.T, l store.Ledger) {
	jobs := family(t, l)
	twin := NewJob(t, 1000)
	twin.Spec.Name = "aa" // newer, and not to be found by the job
	Admit(t, l, twin)
	v := store.Viewer{Job: jobs["a"].ID}
	for _, ref := range []string{"aa", string(jobs["aa"].ID), string(jobs["aa"].ID[:35])} {
		if got, err := l.Resolve(t.Context(), v, ref); err != nil || got.ID != jobs["aa"].ID {
			t.Errorf("%s: %s, %v", ref, got.ID, err)
		}
	}
	if got, err := l.Resolve(t.Context(), v, "a"); err != nil || got.ID != v.Job {
		t.Errorf("itself: %s, %v", got.ID, err)
	}
	for _, name := range []string{"root", "b", "bb", "stranger"} {
		for _, ref := range []string{name, string(jobs[name].ID)} {
			if _, err := l.Resolve(t.Context(), v, ref); job.CodeOf(err) != job.CodeNotFound {
				t.Errorf("%s: %v", ref, err)
			}
		}
	}
	// What begins the ids of many of the owner begins those of two here.
	if _, err := l.Resolve(t.Context(), v, string(v.Job[:4])); err == nil || strings.Contains(err.Error(), string(jobs["b"].ID)) {
		t.Errorf("candidates: %v", err)
	}
}

func deepTree(t *testing.T, l store.Ledger) {
	j := NewJob(t, 1000)
	chain := []job.Job{Admit(t, l, j)}
	Bring(t, l, j, job.Running)
	for depth := range 16 {
		j = NewChild(t, chain[depth])
		chain = append(chain, Admit(t, l, j))
		Bring(t, l, j, job.Running)
	}
	for depth, j := range chain {
		if got := list(t, l, store.Viewer{Job: j.ID}, store.Filter{}); len(got) != len(chain)-depth {
			t.Errorf("at depth %d: %d jobs, want %d", depth, len(got), len(chain)-depth)
		}
	}
}

func eventsOfDescendants(t *testing.T, l store.Ledger) {
	jobs := family(t, l)
	told := func(viewer string) (out map[job.ID]int) {
		out = map[job.ID]int{}
		last := int64(0)
		for _, e := range events(t, l, store.Viewer{Job: jobs[viewer].ID}) {
			if e.Seq <= last {
				t.Errorf("%s: %d after %d", viewer, e.Seq, last)
			}
			last = e.Seq
			out[e.Job]++
		}
		return out
	}
	for viewer, sees := range map[string]string{"root": "a aa b bb root", "a": "a aa", "bb": "bb", "stranger": "stranger"} {
		got := told(viewer)
		for name, j := range jobs {
			want := 0
			if slices.Contains(strings.Fields(sees), name) {
				want = 3 // queued, starting, running
			}
			if got[j.ID] != want {
				t.Errorf("%s is told %d events of %s, want %d", viewer, got[j.ID], name, want)
			}
		}
	}
	// The numbers are those of the tree: what others do leaves no trace in them.
	root := store.Viewer{Job: jobs["root"].ID}
	before := events(t, l, root)
	for range 5 {
		Admit(t, l, NewJob(t, 1000))
	}
	mustCancel(t, l, jobs["a"], store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
	all := events(t, l, root)
	for i, e := range all {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d of the tree has number %d", i+1, e.Seq)
		}
	}
	page, err := l.Events(t.Context(), root, int64(len(before)), 10)
	if err != nil || fmt.Sprint(page) != fmt.Sprint(all[len(before):]) || len(page) == 0 {
		t.Errorf("after %d: %v, %v", len(before), page, err)
	}
}
