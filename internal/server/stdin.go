package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"sandboxd/internal/job"
)

// claims are the jobs whose standard input is being sent: one sender at a time.
type claims struct {
	mu    sync.Mutex
	taken map[job.ID]bool
}

func (c *claims) take(id job.ID) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken[id] {
		return nil, false
	}
	if c.taken == nil {
		c.taken = make(map[job.ID]bool)
	}
	c.taken[id] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.taken, id)
	}, true
}

// errEnded is the cause of what ends because its job did.
var errEnded = job.Errorf(job.CodeConflict, "ref", "the job has ended; the rest of the input was not taken")

// stdin is PUT /v1/jobs/{ref}/stdin. Only a body that arrived whole ends the command's input: one that broke off must
// not look complete to the command.
func (s *Server) stdin(x *exchange) error {
	j, err := s.job(x)
	switch {
	case err != nil:
		return err
	case j.ID == x.caller.Job:
		return x.notItself(j, "a job cannot send itself input")
	case j.Spec.Stdin != job.StdinStream:
		return job.Errorf(job.CodeConflict, "ref", "the job was not submitted with stdin_stream, so it takes no input")
	case j.State == job.Done:
		return errEnded
	}
	release, ok := s.stdins.take(j.ID)
	if !ok {
		return job.Errorf(job.CodeConflict, "ref", "another client is sending input to the job")
	}
	defer release()
	x.w.Header().Set("Connection", "close") // its read deadline may be set until the very end
	ctx, stop := s.untilDone(x.ctx, j)
	defer stop()
	in, err := s.openStdin(ctx, j.ID)
	if err == nil {
		err = s.pour(ctx, x, in)
	}
	if err == nil {
		x.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// startPoll is the longest time between two looks whether a queued job runs.
const startPoll = 250 * time.Millisecond

// openStdin opens the standard input of a job that may still be queued. What counts is the state before the attempt: a
// job that was not running then may run now.
func (s *Server) openStdin(ctx context.Context, id job.ID) (io.WriteCloser, error) {
	for pause := startPoll / 32; ; pause = min(2*pause, startPoll) {
		j, err := s.cfg.Records.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		in, err := s.cfg.Jobs.Stdin(ctx, id)
		soon := j.State == job.Queued || j.State == job.Starting
		if err == nil || !soon || job.CodeOf(err) != job.CodeConflict {
			return in, err
		}
		look := time.NewTimer(pause)
		select {
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
	}
}

// pour copies the body into in, at the pace of the command, and then ends its input.
func (s *Server) pour(ctx context.Context, x *exchange, in io.WriteCloser) error {
	// A read for which no byte comes has to end with the job as well.
	defer context.AfterFunc(ctx, func() { _ = x.rc.SetReadDeadline(time.Unix(1, 0)) })()
	buf := make([]byte, 64<<10)
	for {
		n, err := x.r.Body.Read(buf)
		if n > 0 {
			if _, err := in.Write(buf[:n]); err != nil {
				return job.Wrap(job.CodeConflict, err, "the job reads its standard input no more")
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			x.wholeBody = true
			return in.Close()
		case err != nil:
			return job.Wrap(job.CodeInvalid, err, "the input broke off")
		}
	}
}

// untilDone returns a context that ends with the job. stop ends the watch and waits for it.
func (s *Server) untilDone(parent context.Context, j job.Job) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var watch sync.WaitGroup
	watch.Go(func() {
		if now, err := s.await(ctx, j); err == nil && now.State == job.Done {
			cancel(errEnded)
		}
	})
	return ctx, func() {
		cancel(nil)
		watch.Wait()
	}
}
