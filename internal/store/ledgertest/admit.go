package ledgertest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// fullJob has something in every field that a fresh job may have.
func fullJob(t *testing.T) job.Job {
	j := NewJob(t, 1000)
	j.Groups = []uint32{4, 27}
	j.IdempotencyKey = "key"
	j.Spec = job.Spec{
		Command: []string{"sh", "-c", "echo \"ä\u2028<&>\"\n"}, Image: "base:1", ImageID: "sha256:1", Profile: "default", Role: "reviewer",
		Skills: []string{"go"}, Task: &job.Task{Goal: strings.Repeat("ü", 200_000), Context: "c", Guidance: "g"},
		Env: []job.EnvVar{{Name: "B", Value: "2"}, {Name: "A", Value: ""}}, Stdin: job.StdinBytes, StdinData: []byte{0, 0xff, '\n'},
		Workdir: "/workspace", Workspace: &job.Workspace{Path: "/home/u", Mode: job.WorkspaceOverlay},
		Mounts: []job.Mount{{Source: "/data", Name: "data"}}, Result: "agent", Labels: map[string]string{"a": "1", "b": ""},
		Name: "nightly", Priority: 9, Lease: true, Session: "s-1",
	}
	return j
}

func admitWhole(t *testing.T, l store.Ledger) {
	j := fullJob(t)
	got := Admit(t, l, j)
	if diff := cmp.Diff(j, got); diff != "" {
		t.Errorf("returned by Admit (-want +got):\n%s", diff)
	}
	got, err := l.Job(t.Context(), j.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(j, got); diff != "" {
		t.Errorf("returned by Job (-want +got):\n%s", diff)
	}
	if _, err := l.Job(t.Context(), NewJob(t, 1).ID); job.CodeOf(err) != job.CodeNotFound {
		t.Errorf("an unknown job: %v", err)
	}
}

func admitFaults(t *testing.T, l store.Ledger) {
	stored := Admit(t, l, NewJob(t, 1000))
	for name, spoil := range map[string]func(*store.Admission){
		"no id":                  func(a *store.Admission) { a.Job.ID = "" },
		"no owner":               func(a *store.Admission) { a.Job.Owner = "" },
		"a foreign root":         func(a *store.Admission) { a.Job.Root = stored.ID },
		"a parent without root":  func(a *store.Admission) { a.Job.Parent = stored.ID },
		"a running job":          func(a *store.Admission) { a.Job.State = job.Running },
		"no time":                func(a *store.Admission) { a.Job.Times.Queued = 0 },
		"no bound":               func(a *store.Admission) { a.MaxQueued = 0 },
		"no bound for a uid":     func(a *store.Admission) { a.MaxQueuedPerUID = 0 },
		"an id that exists":      func(a *store.Admission) { a.Job.ID, a.Job.Root = stored.ID, stored.ID },
		"an envelope of nothing": func(a *store.Admission) { a.Job.Envelope = []byte("{") },
	} {
		a := Admission(NewJob(t, 1000))
		spoil(&a)
		if _, _, err := l.Admit(t.Context(), a); err == nil {
			t.Errorf("%s was admitted", name)
		}
	}
	if c, err := l.Counts(t.Context()); err != nil || c.Total != 1 {
		t.Errorf("%d jobs are stored after refusals, %v", c.Total, err)
	}
}

func queueBounds(t *testing.T, l store.Ledger) {
	admit := func(uid uint32) (job.Job, error) {
		a := Admission(NewJob(t, uid))
		a.MaxQueued, a.MaxQueuedPerUID = 3, 2
		j, _, err := l.Admit(t.Context(), a)
		return j, err
	}
	var own []job.Job
	for range 2 {
		j, err := admit(1000)
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, j)
	}
	if _, err := admit(1000); job.CodeOf(err) != job.CodeQuota || !strings.Contains(err.Error(), "2 of at most 2") {
		t.Errorf("a third job of one uid: %v", err)
	}
	if _, err := admit(1001); err != nil {
		t.Fatal(err)
	}
	if _, err := admit(1002); job.CodeOf(err) != job.CodeQueueFull || !strings.Contains(err.Error(), "3 of at most 3") {
		t.Errorf("a fourth job: %v", err)
	}
	for name, leave := range map[string]func(job.Job){
		"claimed":   func(j job.Job) { Bring(t, l, j, job.Starting) },
		"cancelled": func(j job.Job) { mustCancel(t, l, j, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start}) },
		"finished": func(j job.Job) {
			if err := l.Finish(t.Context(), Success(j, job.Queued)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		leave(own[0])
		j, err := admit(1000)
		if err != nil {
			t.Fatalf("after a job was %s there is no room: %v", name, err)
		}
		own = append(own[1:], j)
	}
	if _, err := admit(1000); job.CodeOf(err) != job.CodeQueueFull {
		t.Errorf("a fourth job, later: %v", err)
	}
}

func queueBoundsConcurrent(t *testing.T, l store.Ledger) {
	const bound = 20
	var admitted atomic.Int32
	parallel(t, 60, func(i int) {
		a := Admission(NewJob(t, uint32(i%3)))
		a.MaxQueued, a.MaxQueuedPerUID = bound, bound/2
		_, _, err := l.Admit(t.Context(), a)
		switch {
		case err == nil:
			admitted.Add(1)
		case job.CodeOf(err) != job.CodeQueueFull && job.CodeOf(err) != job.CodeQuota:
			t.Errorf("refused with %v", err)
		}
	})
	q, err := l.Queued(t.Context())
	if err != nil || len(q) != bound || admitted.Load() != bound {
		t.Errorf("%d admitted, %d queued, bound %d, %v", admitted.Load(), len(q), bound, err)
	}
}

func idempotency(t *testing.T, l store.Ledger) {
	keyed := func(uid uint32, hash string) store.Admission {
		a := Admission(NewJob(t, uid))
		a.Job.IdempotencyKey, a.BodyHash = "key", hash
		return a
	}
	first := keyed(1000, "h1")
	if _, created, err := l.Admit(t.Context(), first); err != nil || !created {
		t.Fatal(created, err)
	}
	Bring(t, l, first.Job, job.Running)

	again := keyed(1000, "h1")
	again.MaxQueued = 1 // a repeat takes no place
	j, created, err := l.Admit(t.Context(), again)
	if err != nil || created || j.ID != first.Job.ID || j.State != job.Running {
		t.Errorf("a repeat: job %s in %s, created %v, %v; want %s", j.ID, j.State, created, err, first.Job.ID)
	}
	if _, _, err := l.Admit(t.Context(), keyed(1000, "h2")); job.CodeOf(err) != job.CodeConflict || !strings.Contains(err.Error(), string(first.Job.ID)) {
		t.Errorf("another request under the key: %v", err)
	}
	other := keyed(1001, "h2")
	if j, created, err := l.Admit(t.Context(), other); err != nil || !created || j.ID != other.Job.ID {
		t.Errorf("the key of another caller: %v %v", created, err)
	}
	child := NewChild(t, first.Job)
	child.IdempotencyKey = "key"
	if j := Admit(t, l, child); j.ID != child.ID {
		t.Error("the key of a job is its own, not its owner's")
	}
}

func idempotencyConcurrent(t *testing.T, l store.Ledger) {
	var mu sync.Mutex
	ids, created := map[job.ID]int{}, 0
	parallel(t, 50, func(int) {
		a := Admission(NewJob(t, 1000))
		a.Job.IdempotencyKey = "one"
		j, fresh, err := l.Admit(t.Context(), a)
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		ids[j.ID]++
		if fresh {
			created++
		}
	})
	if len(ids) != 1 || created != 1 {
		t.Errorf("%d jobs, %d created", len(ids), created)
	}
}

func children(t *testing.T, l store.Ledger) {
	root := running(t, l, NewJob(t, 1000))
	child := running(t, l, NewChild(t, root))
	grandchild := Admit(t, l, NewChild(t, child))
	for name, f := range map[string]store.Filter{"of the tree": {Root: root.ID}, "of the owner": {}} {
		if n := len(list(t, l, store.Viewer{Principal: root.Owner}, f)); n != 3 {
			t.Errorf("%d jobs %s, want 3", n, name)
		}
	}
	if got := list(t, l, store.Viewer{All: true}, store.Filter{Parent: root.ID}); len(got) != 1 || got[0].ID != child.ID {
		t.Errorf("children of the root: %d jobs", len(got))
	}

	stranger := NewChild(t, child)
	stranger.Owner = "uid:1001"
	if _, _, err := l.Admit(t.Context(), Admission(stranger)); job.CodeOf(err) != job.CodeConflict {
		t.Errorf("a child of another owner's job: %v", err)
	}
	mustCancel(t, l, grandchild, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
	done(t, l, child)
	if _, _, err := l.Admit(t.Context(), Admission(NewChild(t, child))); job.CodeOf(err) != job.CodeConflict {
		t.Errorf("a child of an ended job: %v", err)
	}
}
