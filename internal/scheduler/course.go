package scheduler

import (
	"context"
	"errors"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// The methods of this file are what a runner reports to while a job takes its course. Each commits before it returns.

// JournalHandedOver is the journal's step between the commit of running and the frame that hands the command over.
const JournalHandedOver = "handed_over"

// Started commits starting → running. It comes before the command is handed over.
func (s *Scheduler) Started(ctx context.Context, j job.Job) error {
	return s.opt.Ledger.Move(ctx, store.Move{ID: j.ID, Attempt: j.Attempt, From: job.Starting, To: job.Running, NowMS: s.opt.Now()})
}

// HandingOver journals that the command is about to be handed over: from here on it is never run again.
func (s *Scheduler) HandingOver(ctx context.Context, j job.Job) error {
	return s.opt.Node.Journal(ctx, j.ID, j.Attempt, JournalHandedOver, s.opt.Now())
}

// HandedOver reports whether that was journaled.
func (s *Scheduler) HandedOver(ctx context.Context, j job.Job) (bool, error) {
	return s.opt.Node.Journaled(ctx, j.ID, j.Attempt, JournalHandedOver)
}

// Finishing commits running → finishing.
func (s *Scheduler) Finishing(ctx context.Context, j job.Job) error {
	s.recall(j.ID)
	return s.opt.Ledger.Move(ctx, store.Move{ID: j.ID, Attempt: j.Attempt, From: job.Running, To: job.Finishing, NowMS: s.opt.Now()})
}

// Finish commits the end of a job, once, and wakes all who wait for it. A ledger that cannot be written now is tried
// again until ctx ends: without its end the job would be running for ever, with nobody to run it.
func (s *Scheduler) Finish(ctx context.Context, j job.Job, from job.State, e job.Ended) error {
	s.recall(j.ID)
	e.Result.Denials, e.Result.DenialsTotal = s.Denials(j.ID)
	e.Times.Settled = s.opt.Now()
	f := store.Finish{ID: j.ID, Attempt: j.Attempt, From: from, Outcome: e.Outcome, Result: e.Result, Times: e.Times, Measured: e.Measured,
		// Nobody reports tokens or cost of a job whose result is its exit: what it held of them counts as spent.
		ChargeUnreported: e.Times.Started > 0}
	err := s.opt.Ledger.Finish(ctx, f)
	for job.CodeOf(err) == job.CodeUnavailable && ctx.Err() == nil && s.stop.Err() == nil {
		s.opt.Log.Warn().Err(err).Str("job", string(j.ID)).Msg("the end of a job could not be stored; trying again")
		s.rest(ctx, tick)
		err = s.opt.Ledger.Finish(ctx, f)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.finishedLocked(j.ID)
	s.mu.Unlock()
	return nil
}

// Awake commits waiting → running, for a job that an earlier daemon left waiting.
func (s *Scheduler) Awake(ctx context.Context, j job.Job) error {
	return s.opt.Ledger.Move(ctx, store.Move{ID: j.ID, Attempt: j.Attempt, From: job.Waiting, To: job.Running, NowMS: s.opt.Now()})
}

// Standing is the state the ledger holds of this attempt of a job; done where it is another's.
func (s *Scheduler) Standing(ctx context.Context, j job.Job) (job.State, error) {
	now, err := s.opt.Ledger.Job(ctx, j.ID)
	if err != nil || now.Attempt != j.Attempt {
		return job.Done, err
	}
	return now.State, nil
}

// Fenced reports whether an error says that another transition of the job was first.
func (s *Scheduler) Fenced(err error) bool { return errors.Is(err, store.ErrFenced) }

// MayRetry reports whether a job whose command was never handed over may be queued again.
func (s *Scheduler) MayRetry(j job.Job) bool { return j.Attempt < maxAttempts }
