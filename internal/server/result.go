package server

import (
	"context"
	"net/http"
	"time"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// result is GET /v1/jobs/{ref}/result.
func (s *Server) result(x *exchange) error {
	wait, err := x.query.span("wait", api.MaxWait)
	if err != nil {
		return err
	}
	j, err := s.job(x)
	if err != nil {
		return err
	}
	if wait > 0 {
		if j, err = s.waitFor(x, j, wait); err != nil {
			return err
		}
	}
	if j.State != job.Done {
		writeJSON(x.w, http.StatusAccepted, x.show(FromJob(j)))
		return nil
	}
	out, err := FromResult(j)
	if err != nil {
		return err
	}
	if x.caller.Job != "" {
		out.Evidence = nil // the engine's own words, for those who see the host
	}
	writeJSON(x.w, http.StatusOK, out)
	return nil
}

// waitFor returns the job once it is done, or as it stands after the wait.
func (s *Server) waitFor(x *exchange, j job.Job, wait time.Duration) (job.Job, error) {
	if err := x.notItself(j, "a job cannot wait for its own end"); err != nil {
		return j, err
	}
	blocked, release := s.blocks(x.ctx, x, j)
	defer release()
	ctx, cancel := context.WithTimeout(blocked, wait)
	defer cancel()
	j, err := s.await(ctx, j)
	if err == nil && j.State != job.Done && x.ctx.Err() == nil {
		err = denied(blocked)
	}
	return j, err
}

// hintPoll is how soon the record is read again when the hint came before it; each time twice as late.
const hintPoll = time.Millisecond

// await returns the job once it is done, or as it was last seen when ctx ends. The record is what counts; the hint
// only says when to look.
func (s *Server) await(ctx context.Context, j job.Job) (job.Job, error) {
	if j.State == job.Done || ctx.Err() != nil {
		return j, nil
	}
	for early := hintPoll; ; {
		hint, pause := s.cfg.Jobs.Done(j.ID), s.cfg.PollDone // before the read, so that no end falls between
		now, err := s.cfg.Records.Job(ctx, j.ID)
		switch {
		case ctx.Err() != nil:
			return j, nil
		case err != nil:
			return j, err
		case now.State == job.Done:
			return now, nil
		}
		j = now
		select {
		case <-hint:
			hint, pause = nil, early
			early = min(2*early, s.cfg.PollDone)
		default:
		}
		look := time.NewTimer(pause)
		select {
		case <-hint:
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
	}
}
