package runner

import (
	"context"
	"errors"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// Waiting times of the daemon as the second to keep them: init acts first, the daemon where init does not.
const (
	pollEvery  = time.Second
	initSlack  = time.Second     // beyond init's own deadline or grace before the daemon kills the job's cgroup
	killSlack  = 5 * time.Second // after that before the container is killed by the engine
	giveUp     = 10 * time.Second
	retryEvery = 2 * time.Second // between two looks at a container whose init does not connect
)

// course is the part of a run between the hand-over and init's last word. Used by one goroutine.
type course struct {
	*run
	began    int64 // boot time of the hand-over, ns
	deadline time.Time
	frames   chan received
	peak     sandbox.Readings

	cause    *job.CancelCause // of the first cancel that reached init
	deadHit  bool             // the daemon's own deadline passed
	escalate *time.Timer
	rung     int // how far killing has come: 0 nothing, 1 asked init, 2 the cgroup, 3 the engine, 4 given up
}

// received is what the reading goroutine passes on: a message, or why the connection is over.
type received struct {
	exited *wire.Exited
	seq    uint64
	err    error
}

// follow stays with a command until it ended, and settles it.
func (x *run) follow(began int64, held wire.Held) job.Disposition {
	c := &course{run: x, began: began, escalate: stoppedTimer()}
	defer c.escalate.Stop()
	left := time.Duration(x.posture.TimeoutMS)*time.Millisecond - time.Duration(wire.Boottime()-began)
	c.deadline = time.Now().Add(max(left, 0) + initSlack)
	c.stdin.attach(x.slot.Conn(), x.job.Spec, held)
	c.listen()
	return c.wait()
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (c *course) wait() job.Disposition {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	deadline := time.NewTimer(time.Until(c.deadline))
	defer deadline.Stop()
	killed := c.kill.Done()
	for {
		select {
		case f := <-c.frames:
			if f.exited != nil {
				return c.settle(*f.exited, f.seq)
			}
			if d, over := c.disconnected(f.err); over {
				return d
			}
		case <-killed:
			killed = nil
			c.cancelJob()
		case <-c.killNow:
			c.ask(0, wire.CauseCancel)
		case <-deadline.C:
			c.deadHit = true
			c.ask(c.window(), wire.CauseDeadline)
		case <-c.escalate.C:
			if d, over := c.climb(); over {
				return d
			}
		case <-poll.C:
			c.sample()
		case <-c.stop.Done():
			return c.detach()
		}
	}
}

// cancelJob asks init to end the job for the cause its context was cancelled with.
func (c *course) cancelJob() {
	var cause *job.CancelCause
	if !errors.As(context.Cause(c.kill), &cause) {
		cause = &job.CancelCause{Reason: job.ReasonByOperator}
	}
	c.cause = cause
	grace := c.window()
	if cause.Kill {
		grace = 0
	}
	c.ask(grace, wire.CauseCancel)
}

// ask sends a cancel to init and sets the time after which the daemon does it itself.
func (c *course) ask(grace time.Duration, why string) {
	if err := c.slot.Conn().Send(wire.Cancel{GraceMS: grace.Milliseconds(), Cause: why}); err != nil {
		c.log.Debug().Err(err).Msg("init could not be told to end the job")
	}
	if c.rung <= 1 {
		c.rung = 1
		c.escalate.Reset(grace + initSlack)
	}
}

// climb takes the next stronger way to end a job that did not end by the one before.
func (c *course) climb() (job.Disposition, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.kill), killSlack)
	defer cancel()
	c.rung++
	switch c.rung {
	case 2:
		c.sample()
		if err := c.slot.KillJob(ctx); err != nil {
			c.log.Error().Err(err).Msg("the job's cgroup could not be killed; the container is next")
		}
		c.escalate.Reset(killSlack)
	case 3:
		if err := c.slot.Kill(ctx); err != nil {
			c.log.Error().Err(err).Msg("the container could not be killed")
		}
		c.escalate.Reset(giveUp)
	default:
		return c.lost(job.ReasonUnkillable, "the container outlives every kill; its slot stays out of use"), true
	}
	return 0, false
}

// sample keeps the largest figures; the last reading before the end decides about cpu.
func (c *course) sample() {
	if r, err := c.slot.Readings(); err == nil {
		c.peak = r
	}
}

// detach leaves the job to the next daemon: init buffers and connects again.
func (c *course) detach() job.Disposition {
	_ = c.slot.Conn().Close()
	c.drain()
	if err := c.out.Detach(); err != nil {
		c.log.Error().Err(err).Msg("the stream could not be flushed")
	}
	c.run.slot = nil // not ours to remove
	return job.Detached
}

// drain waits for the reading goroutine, whose connection is closed.
func (c *course) drain() {
	for f := range c.frames {
		if f.err != nil {
			return
		}
	}
}
