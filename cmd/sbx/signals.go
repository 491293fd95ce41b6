package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// killPatience is how long sbx waits for the end of a job it has asked to kill.
const killPatience = 10 * time.Second

// obey answers signals: the first cancels the job with grace, the second kills it, and from then on the next one ends
// sbx as it ends any program. Before the job is known, the first one leaves.
func (s *session) obey(ctx context.Context, signals <-chan os.Signal) {
	// The requests run beside the loop, so that a daemon that does not answer cannot hold up the next signal.
	var asks sync.WaitGroup
	defer asks.Wait()
	for kill := false; ; kill = true {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		s.interrupted.Store(true)
		job := s.job.Load()
		if job == nil {
			s.leave(errInterrupted)
			return
		}
		asks.Go(func() { s.cancel(ctx, job.ID, kill) })
		if kill {
			s.app.note("killing job %s", job.ID)
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
			break
		}
		s.app.note("cancelling job %s; press Ctrl-C again to kill it", job.ID)
	}
	t := time.NewTimer(killPatience)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
		s.leave(errInterrupted)
	}
}

func (s *session) cancel(ctx context.Context, id string, kill bool) {
	if _, err := s.client.Cancel(ctx, id, kill); err != nil && ctx.Err() == nil {
		s.app.note("the job could not be cancelled: %v; it ends when sbx has been gone for its lease's grace", err)
	}
}
