// Package ledgertest is the conformance suite of store.Ledger and store.NodeState: what every implementation must do,
// whatever lies under it. It also builds the jobs that tests of other rooms admit.
package ledgertest

import (
	"encoding/json"
	"strconv"
	"testing"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// Node is the name of the node the suite's ledgers stand on.
const Node = "node-a"

// Start is the time of the first event in the suite, in Unix milliseconds.
const Start = 1_700_000_000_000

// NewJob builds a fresh root job of a uid, with small values in every field that admission fills.
func NewJob(t testing.TB, uid uint32) job.Job {
	t.Helper()
	id, err := job.NewID()
	if err != nil {
		t.Fatal(err)
	}
	env, err := json.Marshal(envelope.Envelope{
		Profile: "default",
		Posture: envelope.Posture{ImageID: "sha256:1", Runtime: envelope.RuntimeRunc, MilliCPUs: 1000, Memory: 256 << 20},
		Origins: map[string]envelope.Origin{"memory": "default"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return job.Job{
		ID: id, Root: id, Owner: "uid:" + strconv.FormatUint(uint64(uid), 10), OwnerUID: uid, OwnerGID: uid,
		State: job.Queued, Attempt: 1, Node: Node, Envelope: env,
		Spec:  job.Spec{Command: []string{"true"}, Image: "base", ImageID: "sha256:1", Profile: "default", Workdir: "/", Result: "exit"},
		Times: job.Times{Queued: Start},
	}
}

// NewChild builds a fresh child of a job.
func NewChild(t testing.TB, parent job.Job) job.Job {
	t.Helper()
	j := NewJob(t, parent.OwnerUID)
	j.Root, j.Parent, j.Depth = parent.Root, parent.ID, parent.Depth+1
	return j
}

// Admission wraps a job with bounds that do not bind.
func Admission(j job.Job) store.Admission {
	return store.Admission{Job: j, BodyHash: "hash", MaxQueued: 1 << 30, MaxQueuedPerUID: 1 << 30}
}

// Admit stores a job and fails the test where that fails.
func Admit(t testing.TB, l store.Ledger, j job.Job) job.Job {
	t.Helper()
	got, created, err := l.Admit(t.Context(), Admission(j))
	if err != nil || !created {
		t.Fatalf("admit: created %v, %v", created, err)
	}
	return got
}

// pathTo are the transitions that lead a fresh job to a state.
var pathTo = map[job.State][]job.State{
	job.Queued:    {},
	job.Starting:  {job.Starting},
	job.Running:   {job.Starting, job.Running},
	job.Waiting:   {job.Starting, job.Running, job.Waiting},
	job.Finishing: {job.Starting, job.Running, job.Finishing},
	job.Done:      {job.Starting, job.Running, job.Finishing, job.Done},
}

// Bring leads a queued job to a state.
func Bring(t testing.TB, l store.Ledger, j job.Job, to job.State) {
	t.Helper()
	from := job.Queued
	for _, next := range pathTo[to] {
		var err error
		switch next {
		case job.Starting:
			_, err = l.Claim(t.Context(), j.ID, store.Claim{Node: Node, Epoch: 1, NowMS: Start + 1})
		case job.Done:
			err = l.Finish(t.Context(), Success(j, from))
		default:
			err = l.Move(t.Context(), store.Move{ID: j.ID, Attempt: 1, From: from, To: next, NowMS: Start + 2})
		}
		if err != nil {
			t.Fatalf("%s → %s: %v", from, next, err)
		}
		from = next
	}
}

// Success ends a job in its first attempt with exit code 0.
func Success(j job.Job, from job.State) store.Finish {
	zero := 0
	return store.Finish{
		ID: j.ID, Attempt: 1, From: from,
		Outcome: job.Outcome{Status: job.Success, ExitCode: &zero},
		Result:  job.Result{Summary: "done", Stream: &job.StreamInfo{Bytes: 10, Kept: 10}},
		Times:   job.Times{Finished: Start + 3, Settled: Start + 4},
	}
}
