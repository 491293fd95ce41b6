package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sandboxd/client"
)

// The spinner comes only when a job keeps waiting, and asks for its state now and then.
const (
	spinAfter = 400 * time.Millisecond
	spinFrame = 120 * time.Millisecond
	spinAsk   = time.Second
)

// spinner shows on a terminal that a job is queued or starting.
type spinner struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// spin starts a spinner, which does nothing unless stderr is a terminal that wants one. Stop it.
func (a *app) spin(ctx context.Context, c *client.Client, id string, quiet bool) *spinner {
	ctx, cancel := context.WithCancel(ctx)
	s := &spinner{cancel: cancel}
	if a.stderr.colour && !quiet {
		s.ended.Go(func() { s.turn(ctx, a, c, id) })
	}
	return s
}

// stop takes the spinner off the screen. It may be called again.
func (s *spinner) stop() {
	s.cancel()
	s.ended.Wait()
}

func (s *spinner) turn(ctx context.Context, a *app, c *client.Client, id string) {
	t := time.NewTimer(spinAfter)
	defer t.Stop()
	defer a.wipeSpinner()
	text, asked := "", time.Time{}
	for frame := 0; ; frame++ {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if time.Since(asked) > spinAsk {
			text, asked = waitingFor(ctx, c, id), time.Now()
		}
		if text == "" {
			a.wipeSpinner()
		} else {
			a.spinning.Store(true)
			_, _ = fmt.Fprintf(a.stderr, "\r\x1b[K%s %s", a.stderr.paint(yellow, string(`|/-\`[frame%4])), text)
		}
		t.Reset(spinFrame)
	}
}

func (a *app) wipeSpinner() {
	if a.spinning.Swap(false) {
		_, _ = a.stderr.Write([]byte("\r\x1b[K"))
	}
}

// waitingFor says what a job waits for; nothing once it runs.
func waitingFor(ctx context.Context, c *client.Client, id string) string {
	job, err := c.Job(ctx, id)
	switch {
	case err != nil || job.State != "queued" && job.State != "starting":
		return ""
	case job.Position > 0:
		return fmt.Sprintf("queued, number %d", job.Position)
	}
	return clean(job.State)
}
