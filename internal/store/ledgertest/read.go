package ledgertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

func queueOrder(t *testing.T, l store.Ledger) {
	var want []store.QueueItem
	for i := range 20 {
		j := NewJob(t, uint32(1000+i%2))
		j.Spec.Priority = i % 10
		j.Spec.StdinData = []byte("x")
		if i%5 == 4 {
			j.Node = "node-b"
		}
		Admit(t, l, j)
		if j.Node == Node {
			want = append(want, store.QueueItem{ID: j.ID, Root: j.ID, OwnerUID: j.OwnerUID, Priority: i % 10, MilliCPUs: 1000, Memory: 256 << 20, Attempt: 1})
		}
	}
	got, err := l.Queued(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func foreignNode(t *testing.T, l store.Ledger) {
	ours, theirs := Admit(t, l, NewJob(t, 1000)), NewJob(t, 1000)
	theirs.Node = "node-b"
	Admit(t, l, theirs)
	Bring(t, l, ours, job.Running)
	if _, err := l.Claim(t.Context(), theirs.ID, store.Claim{Node: "node-b", Epoch: 7, NowMS: Start}); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]job.ID{Node: ours.ID, "node-b": theirs.ID} {
		got, err := l.Unfinished(t.Context(), node)
		if err != nil || !slices.Equal(ids(got), []job.ID{want}) {
			t.Errorf("unfinished on %s: %v, %v", node, ids(got), err)
		}
	}
	// The queue of another node does not count against ours.
	for i := range 3 {
		j := NewJob(t, 1000)
		j.Node = "node-b"
		if i == 2 {
			j.Node = Node
		}
		a := Admission(j)
		a.MaxQueued, a.MaxQueuedPerUID = 2, 2
		if _, _, err := l.Admit(t.Context(), a); err != nil {
			t.Error(err)
		}
	}
}

// listed are the jobs of the listing tests, oldest first.
func listed(t *testing.T, l store.Ledger) map[string]job.Job {
	jobs := map[string]job.Job{}
	add := func(name string, uid uint32, labels map[string]string, state job.State) {
		j := NewJob(t, uid)
		j.Spec.Name, j.Spec.Labels = name, labels
		jobs[name] = Admit(t, l, j)
		Bring(t, l, j, state)
	}
	add("a", 1000, map[string]string{"team": "x", "env": "dev"}, job.Done)
	add("b", 1000, map[string]string{"team": "x", "env": "prod"}, job.Running)
	add("c", 1000, map[string]string{"team": "y"}, job.Queued)
	add("d", 1001, map[string]string{"team": "x"}, job.Running)
	child := NewChild(t, jobs["b"])
	child.Spec.Name, child.Spec.Labels = "e", map[string]string{"team": "x", "env": "dev"}
	jobs["e"] = Admit(t, l, child)
	return jobs
}

func listing(t *testing.T, l store.Ledger) {
	jobs := listed(t, l)
	all, u1000 := store.Viewer{All: true}, store.Viewer{Principal: "uid:1000"}
	open := []job.State{job.Queued, job.Running}
	for _, test := range []struct {
		v    store.Viewer
		f    store.Filter
		want string
	}{
		{all, store.Filter{}, "edcba"},
		{u1000, store.Filter{}, "ecba"},
		{store.Viewer{Principal: "uid:1001"}, store.Filter{}, "d"},
		{store.Viewer{Principal: "uid:100"}, store.Filter{}, ""},
		{store.Viewer{}, store.Filter{}, ""},
		{store.Viewer{}, store.Filter{Name: "a"}, ""},
		{store.Viewer{}, store.Filter{Labels: map[string]string{"team": "x"}}, ""},
		{all, store.Filter{States: open}, "edcb"},
		{u1000, store.Filter{States: open}, "ecb"},
		{u1000, store.Filter{States: []job.State{job.Done}}, "a"},
		{u1000, store.Filter{States: job.States()}, "ecba"},
		{all, store.Filter{Labels: map[string]string{"team": "x"}}, "edba"},
		{u1000, store.Filter{Labels: map[string]string{"team": "x"}}, "eba"},
		{u1000, store.Filter{Labels: map[string]string{"team": "x", "env": "dev"}}, "ea"},
		{u1000, store.Filter{Labels: map[string]string{"team": "x", "env": ""}}, ""},
		{u1000, store.Filter{Labels: map[string]string{"team": "x"}, States: open, Root: jobs["b"].ID}, "eb"},
		{u1000, store.Filter{Name: "c"}, "c"},
		{u1000, store.Filter{Name: "d"}, ""},
		{all, store.Filter{Root: jobs["b"].ID}, "eb"},
		{u1000, store.Filter{Root: jobs["d"].ID}, ""},
		{all, store.Filter{Parent: jobs["b"].ID}, "e"},
		{u1000, store.Filter{Parent: jobs["b"].ID, Root: jobs["b"].ID, Name: "e", States: open}, "e"},
		{all, store.Filter{Before: jobs["c"].ID}, "ba"},
		{u1000, store.Filter{Limit: 2}, "ec"},
		{u1000, store.Filter{Labels: map[string]string{"team": "x"}, Before: jobs["e"].ID, Limit: 1}, "b"},
	} {
		got := ""
		for _, j := range list(t, l, test.v, test.f) {
			got += j.Spec.Name
		}
		if got != test.want {
			t.Errorf("viewer %+v, filter %+v: %q, want %q", test.v, test.f, got, test.want)
		}
	}
}

func paging(t *testing.T, l store.Ledger) {
	var want []job.ID
	for range 250 {
		want = append(want, Admit(t, l, NewJob(t, 1000)).ID)
	}
	slices.Reverse(want)
	v := store.Viewer{Principal: "uid:1000"}
	for limit, first := range map[int]int{0: 100, 7: 7, 1000: 250, 5000: 250} {
		var got []job.ID
		for f := (store.Filter{Limit: limit}); ; f.Before = got[len(got)-1] {
			page := ids(list(t, l, v, f))
			if len(got) == 0 && len(page) != first {
				t.Errorf("limit %d: a page of %d, want %d", limit, len(page), first)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %d jobs in all, want %d in order", limit, len(got), len(want))
		}
	}
}

func listingIsLight(t *testing.T, l store.Ledger) {
	want := fullJob(t)
	Admit(t, l, want)
	want.Spec.StdinData, want.Spec.Task, want.Spec.Env = nil, nil, nil
	if diff := cmp.Diff([]job.Job{want}, list(t, l, store.Viewer{All: true}, store.Filter{})); diff != "" {
		t.Error(diff)
	}
	for range 20 {
		j := NewJob(t, 1000)
		j.Spec.Command = []string{strings.Repeat("x", 1<<20)}
		Admit(t, l, j)
	}
	n, f := 0, store.Filter{Limit: 50}
	for page := list(t, l, store.Viewer{All: true}, f); len(page) > 0; page = list(t, l, store.Viewer{All: true}, f) {
		if len(page) > 9 {
			t.Errorf("a page of %d MiB", len(page))
		}
		n, f.Before = n+len(page), page[len(page)-1].ID
	}
	if n != 21 {
		t.Errorf("%d jobs in all pages, want 21", n)
	}
}

func resolve(t *testing.T, l store.Ledger) {
	named := func(name string, uid uint32) job.Job {
		j := NewJob(t, uid)
		j.Spec.Name = name
		return Admit(t, l, j)
	}
	mine, newer, other := named("build", 1000), named("build", 1000), named("build", 1001)
	named(string(mine.ID), 1000) // an impostor

	v := store.Viewer{Principal: "uid:1000"}
	for ref, want := range map[string]job.ID{
		string(mine.ID):                  mine.ID,
		strings.ToUpper(string(mine.ID)): mine.ID,
		string(newer.ID[:35]):            newer.ID,
		"build":                          newer.ID,
	} {
		if got, err := l.Resolve(t.Context(), v, ref); err != nil || got.ID != want {
			t.Errorf("%s: %s, %v; want %s", ref, got.ID, err, want)
		}
	}
	if got, err := l.Resolve(t.Context(), store.Viewer{All: true}, "build"); err != nil || got.ID != other.ID {
		t.Errorf("build for an admin: %s, %v", got.ID, err)
	}
	for ref, want := range map[string]job.Code{
		"": job.CodeNotFound, "nope": job.CodeNotFound, "0000": job.CodeNotFound, "%": job.CodeNotFound, "buil": job.CodeNotFound,
		string(other.ID): job.CodeNotFound, string(mine.ID[:4]): job.CodeInvalid,
	} {
		if _, err := l.Resolve(t.Context(), v, ref); job.CodeOf(err) != want {
			t.Errorf("%q: %v, want code %s", ref, err, want)
		}
	}
	_, err := l.Resolve(t.Context(), v, string(mine.ID[:4]))
	for _, id := range []job.ID{mine.ID, newer.ID} {
		if err == nil || !strings.Contains(err.Error(), string(id)) {
			t.Errorf("candidates are not named: %v", err)
		}
	}
	hex := named(string(mine.ID[:35]), 1000)
	if _, err := l.Resolve(t.Context(), v, hex.Spec.Name); job.CodeOf(err) != job.CodeInvalid {
		t.Errorf("a name that begins another's id: %v", err)
	}
}

func counts(t *testing.T, l store.Ledger) {
	want := store.Counts{ByState: map[job.State]int{}}
	for i, s := range job.States() {
		for range i + 1 {
			Bring(t, l, Admit(t, l, NewJob(t, 1000)), s)
			want.ByState[s]++
			want.Total++
		}
	}
	got, err := l.Counts(t.Context())
	if err != nil || got.Total != want.Total || !maps.Equal(got.ByState, want.ByState) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func deadContext(t *testing.T, l store.Ledger) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("gone"))
	if _, _, err := l.Admit(ctx, Admission(NewJob(t, 1000))); err == nil {
		t.Error("admitted")
	}
	if c, err := l.Counts(t.Context()); err != nil || c.Total != 0 {
		t.Errorf("%d jobs, %v", c.Total, err)
	}
}
