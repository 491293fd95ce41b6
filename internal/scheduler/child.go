package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"sandboxd/internal/admission"
	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// parentOf is the job that asks, nil for a host user. A job that ends, or is to end, gets no more children.
func (s *Scheduler) parentOf(ctx context.Context, c job.Caller) (*admission.Parent, error) {
	if c.Job == "" {
		return nil, nil
	}
	p, err := s.opt.Ledger.Job(ctx, c.Job)
	if err != nil {
		return nil, err
	}
	if p.State != job.Running && p.State != job.Waiting || p.CancelReason != "" {
		return nil, job.Errorf(job.CodeConflict, "", "a job that ends cannot delegate any more")
	}
	var e envelope.Envelope
	if err := json.Unmarshal(p.Envelope, &e); err != nil {
		return nil, fmt.Errorf("scheduler: the stored envelope of job %s: %w", p.ID, err)
	}
	left := e.Posture.TimeoutMS
	if p.Times.Started > 0 {
		// For admission alone; what bounds the child in the end is its parent's end.
		left -= min(max(s.opt.Now()-p.Times.Started, 0), left)
	}
	return &admission.Parent{Job: p, Envelope: e, LeftMS: left}, nil
}

// admission is everything the ledger writes for an admitted request.
func (s *Scheduler) admission(j job.Job, adm admission.Admitted, parent *admission.Parent, r admission.Request) store.Admission {
	maxQueued, perUID := s.opt.Checker.Bounds()
	a := store.Admission{Job: j, BodyHash: r.BodyHash, MaxQueued: maxQueued, MaxQueuedPerUID: perUID}
	if s.opt.Trees == nil || adm.Inherit == "" {
		return a
	}
	a.Caps = store.TreeCaps{MaxJobs: adm.Caps.MaxJobs, MaxLive: adm.Caps.MaxLive}
	a.Budget = &store.BudgetAsk{Inherit: adm.Inherit, Limits: adm.Budget, Places: max(adm.Places, 1), Strict: adm.Strict}
	if parent != nil {
		a.Budget.Most = adm.Envelope.Budget
		a.Budget.OwnUse = s.Used(parent.Job.ID)
	}
	return a
}

// Used is what a job that has not ended has used of the measured dimensions: of cpu itself, of output with all below it.
// Nil where it does not run here.
func (s *Scheduler) Used(id job.ID) map[string]int64 {
	s.mu.Lock()
	_, runs := s.running[id]
	_, open := s.done[id] // closed once the end is in the ledger, which has it all then
	s.mu.Unlock()
	if !runs || !open {
		return nil
	}
	return map[string]int64{
		string(budget.CPUMS):       s.runner.CPU(id).Milliseconds(),
		string(budget.OutputBytes): s.written(id),
	}
}

// written is what a live job and its live descendants have written.
func (s *Scheduler) written(id job.ID) int64 {
	s.mu.Lock()
	c := s.meters[id]
	s.mu.Unlock()
	if c == nil {
		return 0
	}
	p, _ := c.Pot()
	return p.Spent
}

// refusals are the denials of live jobs that cannot change: a repeat is answered from here.
type refusals map[job.ID]map[string]error

// Bounds of what is kept for one job.
const (
	maxRefusals = 64
	denyTimeout = 5 * time.Second
)

// answered repeats a denial that cannot change.
func (s *Scheduler) answered(c job.Caller, r admission.Request) error {
	if c.Job == "" || r.BodyHash == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[c.Job][r.BodyHash]
}

// denied records a refusal as an event of the job that asked, and keeps it where it cannot change.
func (s *Scheduler) denied(ctx context.Context, c job.Caller, r admission.Request, err error) error {
	var e *job.Error
	if c.Job == "" || s.opt.Trees == nil || !errors.As(err, &e) || e.Code.HTTPStatus() >= 500 {
		return err
	}
	// What depends on links or on what an image's name means today may be allowed tomorrow.
	if stable(e.Code) && r.BodyHash != "" && r.Workspace == nil && len(r.Mounts) == 0 && r.Image == "" {
		s.mu.Lock()
		if _, open := s.done[c.Job]; open && len(s.refused[c.Job]) < maxRefusals {
			if s.refused[c.Job] == nil {
				s.refused[c.Job] = map[string]error{}
			}
			s.refused[c.Job][r.BodyHash] = err
		}
		s.mu.Unlock()
	}
	s.keepDenial(c.Job, job.Denial{Kind: "delegation", Code: e.Code, Field: e.Field, Detail: e.Message, TimeMS: s.opt.Now()})
	note, cancel := context.WithTimeout(context.WithoutCancel(ctx), denyTimeout)
	defer cancel()
	if _, noteErr := s.opt.Trees.Deny(note, store.Denial{Parent: c.Job, Code: e.Code, Field: e.Field, Detail: e.Message, NowMS: s.opt.Now()}); noteErr != nil {
		s.opt.Log.Warn().Err(noteErr).Str("job", string(c.Job)).Msg("a denial could not be recorded")
	}
	return err
}

// denials are what was refused a live job: the first of them, and how many.
type denials struct {
	first []job.Denial
	total int
}

func (s *Scheduler) keepDenial(id job.ID, d job.Denial) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.done[id]; !open {
		return
	}
	kept := s.denials[id]
	if kept.total++; len(kept.first) < job.MaxDenials {
		kept.first = append(kept.first, d)
	}
	s.denials[id] = kept
}

// Denials returns the first of what this daemon refused a job that has not ended, and how many there were.
func (s *Scheduler) Denials(id job.ID) (first []job.Denial, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.denials[id].first), s.denials[id].total
}

// stable reports whether a denial of this kind stays one however often it is asked.
func stable(c job.Code) bool {
	return c == job.CodeInvalid || c == job.CodeNotSubset || c == job.CodeNotInRoster
}
