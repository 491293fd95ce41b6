package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
	deadline time.Time
	frames   chan received
	quit     func() // ends the reading goroutine and waits for it
	peak     sandbox.Readings

	cause    *job.CancelCause // of the first cancel that reached init
	over     chan exhausted   // a budget ran out; room for one
	spent    job.Reason       // the budget that ran out first
	cut      atomic.Bool      // output beyond the budget was dropped
	ready    chan func()      // what to do once the children have ended
	ending   sync.WaitGroup   // the goroutine that ends them
	deadHit  bool             // the daemon's own deadline passed
	escalate *time.Timer
	sockets  bool         // killed for the memory its sockets held
	asked    *wire.Cancel // the last one sent to init
	rung     int          // how far killing has come: 0 nothing, 1 asked init, 2 the cgroup, 3 the engine, 4 given up
}

// follow stays with a command until it ended, and settles it. Init keeps the deadline; the daemon's own, counted from
// here, is for an init that does not.
func (x *run) follow(held wire.Held) job.Disposition {
	c := &course{run: x, escalate: stoppedTimer(), over: make(chan exhausted, 1), ready: make(chan func(), 1)}
	defer c.escalate.Stop()
	defer c.ending.Wait()
	c.deadline = time.Now().Add(time.Duration(x.posture.TimeoutMS)*time.Millisecond + initSlack)
	c.stdin.attach(x.slot.Conn(), x.job.Spec, held)
	defer x.live.Store(nil)
	c.quit = c.listen()
	defer c.quit()
	return c.wait()
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (c *course) wait() job.Disposition {
	poll := time.NewTimer(c.nextPoll())
	defer poll.Stop()
	deadline := time.NewTimer(time.Until(c.deadline))
	defer deadline.Stop()
	killed := c.kill.Done()
	for {
		select {
		case f := <-c.frames:
			switch {
			case f.exited != nil:
				return c.settle(*f.exited, f.seq)
			case f.err != nil:
				return c.disconnected(f)
			case c.asked != nil: // init may not have got it on the connection before
				_ = send(c.slot.Conn(), *c.asked)
			}
		case <-killed:
			killed = nil
			c.cancelJob()
		case <-c.killNow:
			c.end(true, func() { c.ask(0, wire.CauseCancel) })
		case e := <-c.over:
			c.spent = e.dimension
			c.end(true, func() { c.ask(0, wire.CauseCancel) })
		case <-deadline.C:
			c.deadHit = true
			c.end(false, func() { c.ask(c.window(), wire.CauseDeadline) })
		case do := <-c.ready:
			do()
		case <-c.escalate.C:
			if d, over := c.climb(); over {
				return d
			}
		case <-poll.C:
			c.sample()
			c.boundSockets()
			poll.Reset(c.nextPoll())
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
	c.end(cause.Kill, func() { c.ask(grace, wire.CauseCancel) })
}

// end ends the job's children and then does what ends the job itself. Of several ends that come while the children are
// being ended, those that kill count.
func (c *course) end(kill bool, then func()) {
	c.closeDoor() // nothing new comes below it
	if c.r.opt.Family == nil || kill {
		then() // its children are ended before the end is committed
		return
	}
	c.rung = max(c.rung, 1)
	c.ending.Go(func() {
		c.endChildren(kill)
		select {
		case c.ready <- then:
		default: // the course is over, or another end is on its way
		}
	})
}

// ask sends a cancel to init and sets the time after which the daemon does it itself.
func (c *course) ask(grace time.Duration, why string) {
	if c.asked != nil && c.asked.GraceMS == 0 && grace > 0 {
		return // a kill is not taken back
	}
	c.asked = &wire.Cancel{GraceMS: grace.Milliseconds(), Cause: why}
	if err := send(c.slot.Conn(), *c.asked); err != nil {
		c.log.Debug().Err(err).Msg("init could not be told to end the job")
	}
	if c.rung <= 1 {
		c.rung = 1
		c.escalate.Reset(grace + initSlack)
	}
	c.finishing()
}

// finishing commits that the job is in its finishing window. It is for those who look; nothing is decided by it.
func (c *course) finishing() {
	if c.from == job.Finishing {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.kill), killSlack)
	defer cancel()
	if err := c.r.opt.Ledger.Finishing(ctx, c.job); err != nil {
		c.log.Warn().Err(err).Msg("the finishing window could not be recorded")
		return
	}
	c.from = job.Finishing
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

// boundSockets ends a job whose sockets hold more than its memory limit: the kernel does not.
func (c *course) boundSockets() {
	if c.sockets || c.peak.Memory+c.peak.Sockets <= c.posture.Memory {
		return
	}
	c.sockets = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.kill), killSlack)
	defer cancel()
	if err := c.slot.KillJob(ctx); err != nil {
		c.log.Error().Err(err).Msg("a job over its memory by its sockets could not be killed")
	}
}

// sample keeps the largest figures; the last reading before the end decides about cpu.
func (c *course) sample() {
	if r, err := c.slot.Readings(); err == nil {
		c.peak = r
		c.cpu.Store(int64(r.CPU))
	}
}

// detach leaves the job to the next daemon: init buffers and connects again.
func (c *course) detach() job.Disposition {
	c.quit()
	if err := c.out.Detach(); err != nil {
		c.log.Error().Err(err).Msg("the stream could not be flushed")
	}
	c.run.slot = nil // not ours to remove
	return job.Detached
}
