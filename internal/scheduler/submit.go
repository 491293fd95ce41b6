package scheduler

import (
	"context"
	"encoding/json"

	"sandboxd/internal/admission"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// Submit passes a request through admission, stores it durably and queues it. created is false when the caller's
// idempotency key named a job before.
func (s *Scheduler) Submit(ctx context.Context, c job.Caller, r admission.Request) (job.Job, bool, error) {
	s.mu.Lock()
	draining := s.draining
	s.mu.Unlock()
	if draining {
		return job.Job{}, false, job.Errorf(job.CodeDraining, "", "the daemon is stopping and takes no more jobs").WithHint("try again when it is back")
	}
	parent, err := s.parentOf(ctx, c)
	if err != nil {
		return job.Job{}, false, err
	}
	if err := s.answered(c, r); err != nil {
		return job.Job{}, false, err
	}
	adm, err := s.opt.Checker.Check(ctx, c, parent, r)
	if err != nil {
		return job.Job{}, false, s.denied(ctx, c, r, err)
	}
	id, err := job.NewID()
	if err != nil {
		return job.Job{}, false, err
	}
	j := job.Job{
		ID: id, Root: id, Owner: c.Principal, OwnerUID: c.UID, OwnerGID: c.GID, Groups: c.Groups,
		Spec: adm.Spec, Envelope: adm.Frozen, State: job.Queued, Attempt: 1, Node: s.opt.NodeName, Epoch: s.epoch,
		IdempotencyKey: r.IdempotencyKey, Times: job.Times{Queued: s.opt.Now()},
	}
	if parent != nil {
		p := parent.Job
		j.Root, j.Parent, j.Depth = p.Root, p.ID, p.Depth+1
		j.Owner, j.OwnerUID, j.OwnerGID, j.Groups = p.Owner, p.OwnerUID, p.OwnerGID, p.Groups
	}
	s.expect(id)
	stored, created, err := s.opt.Ledger.Admit(ctx, s.admission(j, adm, parent, r))
	if err != nil {
		err = s.denied(ctx, c, r, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || !created {
		s.finishedLocked(id)
		return stored, false, err
	}
	// Somebody may have seen the job in a listing and cancelled it already; then nobody expects it any more.
	if _, open := s.done[id]; open {
		s.queue.add(itemOf(stored))
		s.Wake()
	}
	return stored, true, nil
}

// expect makes a job one that can be waited for.
func (s *Scheduler) expect(id job.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[id] = make(chan struct{})
}

// Cancel stores the wish to end a job and acts on it. A finished job is returned as it is.
func (s *Scheduler) Cancel(ctx context.Context, c job.Caller, id job.ID, kill bool, reason job.Reason) (job.Job, error) {
	j, ended, err := s.opt.Ledger.Cancel(ctx, id, store.Cancel{Reason: reason, Kill: kill, By: c.Principal, NowMS: s.opt.Now()})
	if err != nil {
		return j, err
	}
	if !ended && s.waits(id) {
		// It got the cancel while it was given back to the queue, and ended there; or its claim was committed and the
		// answer lost, and the next claim finds the wish. The record tells.
		if again, err := s.opt.Ledger.Job(ctx, id); err == nil {
			j, ended = again, again.State == job.Done
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, runs := s.running[id]
	switch {
	case ended:
		s.queue.remove(id)
		s.finishedLocked(id)
		s.Wake() // all others may have waited for it
	case !runs || j.State == job.Done:
	case e.cancel == nil:
		e.wish = &job.CancelCause{Reason: j.CancelReason, Kill: j.CancelKill}
	default:
		e.cancel(&job.CancelCause{Reason: j.CancelReason, Kill: j.CancelKill})
		if j.CancelKill {
			s.runner.Strengthen(id)
		}
	}
	return j, nil
}

// waits reports whether a job is in the queue.
func (s *Scheduler) waits(id job.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.has(id)
}

// itemOf is what the queue needs of a job.
func itemOf(j job.Job) store.QueueItem {
	it := store.QueueItem{ID: j.ID, Root: j.Root, OwnerUID: j.OwnerUID, Priority: j.Spec.Priority, Attempt: j.Attempt}
	var e envelope.Envelope
	if json.Unmarshal(j.Envelope, &e) == nil {
		it.MilliCPUs, it.Memory = e.Posture.MilliCPUs, e.Posture.Memory
	}
	return it
}
