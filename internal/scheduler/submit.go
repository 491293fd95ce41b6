package scheduler

import (
	"context"
	"encoding/json"
	"errors"

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
	adm, err := s.opt.Checker.Check(ctx, c, r)
	if err != nil {
		return job.Job{}, false, err
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
	maxQueued, perUID := s.opt.Checker.Bounds()
	stored, created, err := s.opt.Ledger.Admit(ctx, store.Admission{Job: j, BodyHash: r.BodyHash, MaxQueued: maxQueued, MaxQueuedPerUID: perUID})
	if err != nil || !created {
		return stored, false, err
	}
	s.mu.Lock()
	s.enqueueLocked(itemOf(stored))
	s.mu.Unlock()
	s.Wake()
	return stored, true, nil
}

// Cancel stores the wish to end a job and acts on it. A finished job is returned as it is.
func (s *Scheduler) Cancel(ctx context.Context, c job.Caller, id job.ID, kill bool, reason job.Reason) (job.Job, error) {
	j, ended, err := s.opt.Ledger.Cancel(ctx, id, store.Cancel{Reason: reason, Kill: kill, By: c.Principal, NowMS: s.opt.Now()})
	if err != nil {
		return j, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended {
		s.queue.remove(id)
		s.finishedLocked(id)
		return j, nil
	}
	e, ok := s.running[id]
	if !ok || j.State == job.Done {
		return j, nil
	}
	cause := &job.CancelCause{Reason: j.CancelReason, Kill: j.CancelKill}
	if e.cancel == nil {
		e.wish = cause
		return j, nil
	}
	e.cancel(cause)
	if j.CancelKill {
		s.runner.Strengthen(id)
	}
	return j, nil
}

// unclaim queues a job again whose command was never handed over, or ends it when that happened too often.
func (s *Scheduler) unclaim(j job.Job) {
	ctx := context.WithoutCancel(s.stop)
	err := s.opt.Ledger.Move(ctx, store.Move{ID: j.ID, Attempt: j.Attempt, From: job.Starting, To: job.Queued, NowMS: s.opt.Now()})
	if err != nil {
		if !errors.Is(err, store.ErrFenced) {
			s.opt.Log.Error().Err(err).Str("job", string(j.ID)).Msg("a job could not be queued again; the next start of the daemon settles it")
		}
		return
	}
	it := itemOf(j)
	it.Attempt++
	s.mu.Lock()
	s.enqueueLocked(it)
	s.mu.Unlock()
}

// itemOf is what the queue needs of a job.
func itemOf(j job.Job) store.QueueItem {
	it := store.QueueItem{ID: j.ID, Root: j.Root, OwnerUID: j.OwnerUID, Priority: j.Spec.Priority, Attempt: j.Attempt}
	var e envelope.Envelope
	if json.Unmarshal(j.Envelope, &e) == nil {
		it.MilliCPUs, it.Memory = e.Posture.MilliCPUs, e.Posture.Memory+envelope.InitMemory
	}
	return it
}
