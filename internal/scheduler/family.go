package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// EndChildren cancels the live descendants of a job, deepest first, and returns when none is left or ctx ends. Nothing
// new comes below a job that ends: its socket is closed, or its cancel is stored, before this is called.
func (s *Scheduler) EndChildren(ctx context.Context, j job.Job, kill bool) error {
	if s.opt.Trees == nil {
		return nil
	}
	for {
		live, err := s.opt.Trees.Descendants(ctx, j.ID, true)
		if err != nil || len(live) == 0 {
			return err
		}
		for _, d := range live {
			if _, err := s.Cancel(ctx, job.Caller{Principal: "daemon", Admin: true}, d.ID, kill, job.ReasonParentEnd); err != nil {
				return fmt.Errorf("ending child %s: %w", d.ID, err)
			}
		}
		for _, d := range live {
			select {
			case <-s.Done(d.ID):
			case <-ctx.Done():
				return fmt.Errorf("%d children still run: %w", len(live), context.Cause(ctx))
			}
		}
		// A hint closed the channels; the ledger decides.
		t := time.NewTimer(10 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// meters hold one chain a live job, which debits its ancestors' too. Guarded by the scheduler's mutex.
type meters map[job.ID]*budget.Chain

// Output meters what a job writes; used is what an earlier daemon stored already.
func (s *Scheduler) Output(j job.Job, used int64) *budget.Chain {
	s.mu.Lock()
	c := s.chainLocked(j)
	s.mu.Unlock()
	if used > 0 {
		c.Charge(used)
	}
	return c
}

// chainLocked makes the job's link below its parent's. An ancestor that this daemon has not met is read from the ledger.
func (s *Scheduler) chainLocked(j job.Job) *budget.Chain {
	if c, ok := s.meters[j.ID]; ok {
		return c
	}
	var above *budget.Chain
	if j.Parent != "" {
		parent, err := s.opt.Ledger.Job(context.WithoutCancel(s.stop), j.Parent)
		if err != nil {
			// Without its ancestors a budget cannot be kept: nothing is allowed.
			s.opt.Log.Error().Err(err).Str("job", string(j.ID)).Msg("the job's parent cannot be read; it may write nothing")
			return budget.NewChain(nil, &budget.Pot{}, nil)
		}
		above = s.chainLocked(parent)
	}
	c := budget.NewChain(above, s.potOf(j, budget.OutputBytes), s.warner(j, budget.OutputBytes))
	s.meters[j.ID] = c
	return c
}

// potOf is the job's pot of a dimension, nil where it has no limit of its own. What settled children spent is in it.
func (s *Scheduler) potOf(j job.Job, d budget.Dim) *budget.Pot {
	limit, limited := j.Grants[string(d)]
	if !limited {
		return nil
	}
	p := &budget.Pot{Limit: limit}
	pots, err := s.pots(j.ID)
	if err != nil {
		s.opt.Log.Error().Err(err).Str("job", string(j.ID)).Msg("the job's budget cannot be read; nothing of it is left")
		p.Spent = limit
		return p
	}
	for _, line := range pots[j.ID] {
		if line.Dimension == string(d) {
			p.Spent, p.Granted = line.Spent, line.Granted
		}
	}
	return p
}

// pots reads a budget, more than once where the ledger cannot be read at the moment: a job must not pay for that. The
// daemon's stop does not end it.
func (s *Scheduler) pots(id job.ID) (pots map[job.ID][]store.PotLine, err error) {
	for try := range readTries {
		if try > 0 {
			time.Sleep(readAgain)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.stop), readTimeout)
		pots, err = s.opt.Trees.Pots(ctx, id)
		cancel()
		if err == nil {
			return pots, nil
		}
	}
	return nil, err
}

// Bounds of reading a budget.
const (
	readTries   = 5
	readAgain   = 200 * time.Millisecond
	readTimeout = 5 * time.Second
)

// CPULeft is the processor time the job itself may still use: its limit, less what its children hold and have spent.
func (s *Scheduler) CPULeft(_ context.Context, j job.Job, used time.Duration) (time.Duration, bool) {
	p := s.potOf(j, budget.CPUMS)
	if p == nil {
		return 0, false
	}
	s.warnCPU(j, *p, used)
	return time.Duration(p.Remaining())*time.Millisecond - used, true
}

// warnCPU tells once each when a share of the processor time is used.
func (s *Scheduler) warnCPU(j job.Job, p budget.Pot, used time.Duration) {
	p = p.Spend(used.Milliseconds())
	s.mu.Lock()
	p.Warned = s.warned[j.ID]
	p, reached := p.Warn()
	if len(reached) > 0 {
		s.warned[j.ID] = p.Warned
	}
	s.mu.Unlock()
	for _, percent := range reached {
		s.warner(j, budget.CPUMS)(percent)
	}
}

// warner tells the tree that a share of a budget is spent.
func (s *Scheduler) warner(j job.Job, d budget.Dim) func(int) {
	return func(percent int) {
		err := s.opt.Trees.Tell(context.WithoutCancel(s.stop), j.ID, "budget_warning",
			map[string]string{"dimension": string(d), "percent": fmt.Sprint(percent)}, s.opt.Now())
		if err != nil && !errors.Is(err, context.Canceled) {
			s.opt.Log.Warn().Err(err).Str("job", string(j.ID)).Msg("a budget warning could not be stored")
		}
	}
}

// forgetLocked drops what was kept of a job that ended.
func (s *Scheduler) forgetLocked(id job.ID) {
	delete(s.meters, id)
	delete(s.warned, id)
	delete(s.refused, id)
	delete(s.denials, id)
}
