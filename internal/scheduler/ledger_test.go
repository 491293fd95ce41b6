package scheduler_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// memory is a ledger and node state in memory that keeps the contract of store.Ledger as far as the scheduler uses it.
// Its faults are had on demand, and it stands still in a bubble of synctest; sqlite_test.go has the real one.
type memory struct {
	store.Reader    // what is not below is not called
	store.Trees     // likewise
	store.NodeState // likewise

	// before a step commits, and after it did: an error is what the caller gets. Called without the lock.
	before, after func(step string, id job.ID) error

	mu      sync.Mutex
	jobs    map[job.ID]job.Job
	keys    map[string]job.ID
	hashes  map[string]string
	journal map[string]bool
	ends    map[job.ID]int // how often a job became done
	claims  []job.ID       // in their order
}

func newMemory() *memory {
	return &memory{jobs: map[job.ID]job.Job{}, keys: map[string]job.ID{}, hashes: map[string]string{}, journal: map[string]bool{}, ends: map[job.ID]int{}}
}

var _ interface {
	store.Ledger
	store.NodeState
} = (*memory)(nil)

// step runs a decision between the two hooks.
func (m *memory) step(name string, id job.ID, decide func() error) error {
	m.mu.Lock()
	before, after := m.before, m.after
	m.mu.Unlock()
	if before != nil {
		if err := before(name, id); err != nil {
			return err
		}
	}
	m.mu.Lock()
	err := decide()
	m.mu.Unlock()
	if err == nil && after != nil {
		err = after(name, id)
	}
	return err
}

func (m *memory) Admit(ctx context.Context, a store.Admission) (out job.Job, created bool, err error) {
	err = m.step("admit", a.Job.ID, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		key := a.Job.Owner + "\x00" + a.Job.IdempotencyKey
		if first, ok := m.keys[key]; ok && a.Job.IdempotencyKey != "" {
			if m.hashes[key] != a.BodyHash {
				return job.Errorf(job.CodeConflict, "idempotency_key", "used before")
			}
			out = m.jobs[first]
			return nil
		}
		if len(m.jobs) >= a.MaxQueued { // as near as the scheduler's tests need it
			return job.Errorf(job.CodeQueueFull, "", "full")
		}
		m.jobs[a.Job.ID], m.keys[key], m.hashes[key] = a.Job, a.Job.ID, a.BodyHash
		out, created = a.Job, true
		return nil
	})
	return out, created, err
}

// change edits a job in a state and attempt.
func (m *memory) change(name string, id job.ID, attempt int, from job.State, edit func(*job.Job)) (out job.Job, err error) {
	err = m.step(name, id, func() error {
		j, ok := m.jobs[id]
		if !ok || j.State != from || attempt != 0 && j.Attempt != attempt {
			return fmt.Errorf("%w: %s is %s in attempt %d, not %s in attempt %d", store.ErrFenced, id, j.State, j.Attempt, from, attempt)
		}
		edit(&j)
		m.put(j)
		out = j
		return nil
	})
	return out, err
}

func (m *memory) put(j job.Job) {
	if j.State == job.Done {
		m.ends[j.ID]++
	}
	m.jobs[j.ID] = j
}

func (m *memory) ended(id job.ID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ends[id]
}

func (m *memory) Claim(_ context.Context, id job.ID, c store.Claim) (job.Job, error) {
	j, err := m.change("claim", id, 0, job.Queued, func(j *job.Job) {
		j.State, j.Node, j.Epoch = job.Starting, c.Node, c.Epoch
		m.claims = append(m.claims, id)
	})
	if err != nil {
		return job.Job{}, err
	}
	return j, nil
}

func (m *memory) Move(_ context.Context, v store.Move) error {
	if err := job.CheckTransition(v.From, v.To); err != nil {
		return err
	}
	_, err := m.change("move", v.ID, v.Attempt, v.From, func(j *job.Job) {
		switch {
		case v.To == job.Queued && j.CancelReason != "":
			j.State, j.Outcome = job.Done, &job.Outcome{Status: job.Cancelled, Reason: j.CancelReason}
		case v.To == job.Queued:
			j.State = job.Queued
			j.Attempt++
		default:
			j.State = v.To
		}
	})
	return err
}

func (m *memory) Finish(_ context.Context, f store.Finish) error {
	if f.Times.Settled <= 0 {
		return errors.New("no time")
	}
	_, err := m.change("finish", f.ID, f.Attempt, f.From, func(j *job.Job) { j.State, j.Outcome, j.Times = job.Done, &f.Outcome, f.Times })
	return err
}

func (m *memory) Cancel(_ context.Context, id job.ID, c store.Cancel) (out job.Job, ended bool, err error) {
	err = m.step("cancel", id, func() error {
		j, ok := m.jobs[id]
		switch {
		case !ok:
			return job.Errorf(job.CodeNotFound, "", "no such job")
		case j.State == job.Done:
		case j.State == job.Queued:
			ended = true
			j.State, j.CancelReason, j.Outcome = job.Done, c.Reason, &job.Outcome{Status: job.Cancelled, Reason: c.Reason}
			m.put(j)
		default:
			if j.CancelReason == "" {
				j.CancelReason = c.Reason
			}
			j.CancelKill = j.CancelKill || c.Kill
			m.put(j)
		}
		return nil
	})
	if err != nil {
		return job.Job{}, false, err
	}
	out, err = m.Job(context.Background(), id)
	return out, ended, err
}

func (m *memory) Job(ctx context.Context, id job.ID) (out job.Job, err error) {
	err = m.step("job", id, func() error {
		var ok bool
		if out, ok = m.jobs[id]; !ok {
			return job.Errorf(job.CodeNotFound, "", "no such job")
		}
		return ctx.Err()
	})
	return out, err
}

// all lists the jobs in order of age.
func (m *memory) all() []job.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]job.Job, 0, len(m.jobs))
	for _, j := range m.jobs {
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b job.Job) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

func (m *memory) Queued(context.Context) (out []store.QueueItem, err error) {
	for _, j := range m.all() {
		if j.State == job.Queued {
			var e envelope.Envelope
			if err := json.Unmarshal(j.Envelope, &e); err != nil {
				return nil, err
			}
			out = append(out, store.QueueItem{ID: j.ID, Root: j.Root, OwnerUID: j.OwnerUID, Priority: j.Spec.Priority, Attempt: j.Attempt,
				MilliCPUs: e.Posture.MilliCPUs, Memory: e.Posture.Memory})
		}
	}
	return out, nil
}

func (m *memory) Unfinished(_ context.Context, node string) (out []job.Job, err error) {
	for _, j := range m.all() {
		if j.State.Live() && j.Node == node {
			out = append(out, j)
		}
	}
	return out, nil
}

func (m *memory) Journal(_ context.Context, id job.ID, attempt int, step string, _ int64) error {
	return m.step("journal", id, func() error { m.journal[fmt.Sprint(id, attempt, step)] = true; return nil })
}

func (m *memory) Journaled(_ context.Context, id job.ID, attempt int, step string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.journal[fmt.Sprint(id, attempt, step)], nil
}
