package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sandboxd/api"
	"sandboxd/client"
)

// session is one job in the foreground.
type session struct {
	app    *app
	client *client.Client
	opts   runOptions

	job         atomic.Pointer[api.Job] // nil until it is submitted
	interrupted atomic.Bool
	leave       context.CancelCauseFunc // gives up waiting
}

// foreground submits a job, passes its output on, and ends with its exit code. The lease, standard input, signals and
// the spinner run beside that and end before it returns.
func (a *app) foreground(ctx context.Context, c *client.Client, req api.JobRequest, opts runOptions) error {
	ctx, leave := context.WithCancelCause(ctx)
	s := &session{app: a, client: c, opts: opts, leave: leave}
	var beside sync.WaitGroup
	defer beside.Wait()
	defer leave(nil)

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	beside.Go(func() { s.obey(ctx, signals) })

	job, err := c.Submit(ctx, req)
	if err != nil {
		return err
	}
	s.job.Store(job)
	beside.Go(func() { s.hold(ctx, job.ID) })
	if opts.interactive {
		beside.Go(func() { s.forward(ctx, job.ID) })
	}
	if err := s.show(ctx, job); err != nil {
		return err
	}
	result, err := c.WaitResult(ctx, job.ID)
	if err != nil {
		return s.noResult(job.ID, err)
	}
	return s.end(result)
}

// end tells how the job ended and picks the exit code.
func (s *session) end(result *api.Result) error {
	a := s.app
	if st := result.Stream; st != nil && st.Fault != "" {
		a.note("job %s: its recorded output is damaged: %s", result.Job, st.Fault)
	}
	if result.Status != "success" {
		a.note("%s", causeLine(result))
	}
	if s.opts.json {
		if err := a.printJSON(result); err != nil {
			return err
		}
	}
	switch {
	case s.interrupted.Load():
		return exitCode(exitInterrupted)
	case s.opts.exitStatus:
		return exitCode(result.StatusExit)
	}
	return exitCode(result.RunExit)
}

// noResult explains why the end of the job is not known.
func (s *session) noResult(id string, err error) error {
	if errors.Is(err, errInterrupted) {
		return fmt.Errorf("job %s: %w; left before it ended, see 'sbx inspect %s'", id, err, id)
	}
	s.app.note("job %s: its result did not come; 'sbx wait %s' asks again", id, id)
	return err
}

// show passes the job's output on until it is complete. Output that breaks off does not hide the result.
func (s *session) show(ctx context.Context, job *api.Job) error {
	spinner := s.app.spin(ctx, s.client, job.ID, s.opts.quiet)
	defer spinner.stop()
	if s.opts.quiet {
		return nil
	}
	stream, err := s.client.Stream(ctx, job.ID, client.StreamOptions{Follow: true})
	if err != nil {
		return s.noOutput(ctx, job.ID, err)
	}
	defer stream.Close()
	out := s.printer(job)
	for {
		r, err := stream.Next()
		spinner.stop()
		if err != nil {
			if werr := out.finish(); werr != nil {
				return s.cannotWrite(werr)
			}
			return s.noOutput(ctx, job.ID, err)
		}
		if err := out.record(r); err != nil {
			return s.cannotWrite(err)
		}
	}
}

func (s *session) printer(job *api.Job) *printer {
	p := &printer{stdout: s.app.stdout, stderr: s.app.stderr, notes: s.app}
	if s.opts.json {
		p.stdout = s.app.stderr
	}
	label := s.opts.prefix
	if s.opts.nameLines {
		if label = job.Name; label == "" {
			label = shortID(job.ID)
		}
	}
	if label != "" {
		p.prefix(label)
	}
	return p
}

// noOutput decides whether the end of the output ends the session: only when sbx itself is to end.
func (s *session) noOutput(ctx context.Context, id string, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case ctx.Err() != nil:
		return s.noResult(id, err)
	}
	s.app.note("the output breaks off here: %v; read it with 'sbx logs %s'", err, id)
	return nil
}

// cannotWrite ends the session because nobody takes the output, and the job by its lease.
func (s *session) cannotWrite(err error) error {
	return fmt.Errorf("writing the job's output: %w; the job is cancelled", err)
}

// hold keeps the job's lease.
func (s *session) hold(ctx context.Context, id string) {
	hold := s.client.LeaseAndWait
	if s.opts.interactive { // whoever makes the input must not stand still
		hold = s.client.Lease
	}
	if err := hold(ctx, id); err != nil && ctx.Err() == nil && !s.over(ctx, id) {
		s.app.note("the lease of job %s is lost, so the daemon will cancel it: %v", id, err)
	}
}

// settle is how long a job is given to end before a cut of its input is worth a word.
const settle = time.Second

// forward sends standard input. A command that ends without reading all of it is nothing to speak of.
func (s *session) forward(ctx context.Context, id string) {
	err := s.client.Stdin(ctx, id, s.app.stdin)
	if err == nil {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-time.After(settle):
	}
	if !s.over(ctx, id) {
		s.app.note("the job gets no more standard input: %v", err)
	}
}

// over reports whether the job has ended, or is about to.
func (s *session) over(ctx context.Context, id string) bool {
	job, err := s.client.Job(ctx, id)
	return err != nil || job.State == client.StateDone || job.State == "finishing"
}
