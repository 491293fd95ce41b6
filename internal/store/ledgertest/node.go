package ledgertest

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/store"
)

func boots(t *testing.T, n store.NodeState) {
	for want := int64(1); want <= 3; want++ {
		if got, err := n.Boot(t.Context()); err != nil || got != want {
			t.Errorf("boot %d: %d, %v", want, got, err)
		}
	}
}

func instance(t *testing.T, n store.NodeState) {
	var mu sync.Mutex
	seen := map[string]bool{}
	parallel(t, 10, func(int) {
		id, err := n.Instance(t.Context())
		if err != nil || len(id) < 16 {
			t.Errorf("%q, %v", id, err)
		}
		mu.Lock()
		defer mu.Unlock()
		seen[id] = true
	})
	if len(seen) != 1 {
		t.Errorf("%d ids", len(seen))
	}
}

func slots(t *testing.T, n store.NodeState) {
	a := store.Slot{ID: "a", State: "intent", UID: 20001}
	b := store.Slot{ID: "b", State: "taken", UID: 20002, ContainerID: "c", Job: "j", Attempt: 2, Dir: "/run/b", Key: []byte{0, 1}, Evidence: []byte(`{"a":1}`), Error: "e", Tries: 3, UpdatedMS: Start}
	put := func(s store.Slot) {
		t.Helper()
		if err := n.PutSlot(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want ...store.Slot) {
		t.Helper()
		got, err := n.Slots(t.Context())
		slices.SortFunc(got, func(x, y store.Slot) int { return int(x.ID[0]) - int(y.ID[0]) })
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	check()
	put(b)
	put(a)
	check(a, b)
	a.State, a.ContainerID, a.Key = "created", "x", []byte("k")
	put(a)
	b.Key, b.Job = nil, ""
	put(b)
	check(a, b)
	for range 2 { // the second time nothing is there, which is what was asked for
		if err := n.DeleteSlot(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	}
	check(a)
	if err := n.PutSlot(t.Context(), store.Slot{ID: "x"}); err == nil {
		t.Error("a slot without state was stored")
	}
}

func journal(t *testing.T, n store.NodeState) {
	is := func(attempt int, step string, want bool) {
		t.Helper()
		if got, err := n.Journaled(t.Context(), "j", attempt, step); err != nil || got != want {
			t.Errorf("%s in attempt %d: %v, %v", step, attempt, got, err)
		}
	}
	is(1, "handed_over", false)
	for range 2 {
		if err := n.Journal(t.Context(), "j", 1, "handed_over", Start); err != nil {
			t.Error(err)
		}
	}
	is(1, "handed_over", true)
	is(2, "handed_over", false)
	is(1, "result_committed", false)
}
