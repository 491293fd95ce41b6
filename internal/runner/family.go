package runner

import (
	"context"
	"io"
	"time"

	"sandboxd/internal/job"
)

// Family is what a runner asks about a job's place in its tree.
type Family interface {
	// EndChildren cancels the live descendants of a job, deepest first, and returns when none is left or ctx ends.
	EndChildren(ctx context.Context, j job.Job, kill bool) error
	// Output meters what the job writes; used is what an earlier daemon stored already.
	Output(j job.Job, used int64) Meter
	// CPULeft is the processor time the job itself may still use, its children's grants taken off; limited is false
	// where no budget bounds it.
	CPULeft(ctx context.Context, j job.Job, used time.Duration) (left time.Duration, limited bool)
}

// Meter grants bytes of one dimension; see budget.Chain.
type Meter interface {
	// Debit returns how many of n bytes may be stored.
	Debit(n int64) int64
}

// Doors opens a job's own socket to the daemon in its slot's directory.
type Doors interface {
	// Open returns nil where the job's envelope allows it nothing there.
	Open(j job.Job, dir string, gid uint32) (io.Closer, error)
}

// childrenGrace is how long children may take to end beyond their own finishing windows.
const childrenGrace = 5 * time.Second

// openUp makes the job one that can be frozen and metered, and then gives it its socket: what comes through it must find
// both.
func (x *run) openUp() error {
	if r, err := x.slot.Readings(); err == nil {
		x.cpu.Store(int64(r.CPU))
	}
	if x.r.opt.Family != nil {
		stdout, stderr := x.out.Sums()
		x.meter = x.r.opt.Family.Output(x.job, int64(stdout.Bytes+stderr.Bytes))
	}
	x.live.Store(x.slot)
	return x.openDoor()
}

// openDoor gives the job its socket, if it may have one.
func (x *run) openDoor() error {
	if x.r.opt.Doors == nil {
		return nil
	}
	door, err := x.r.opt.Doors.Open(x.job, x.slot.Dir(), x.slot.UID())
	if err != nil || door == nil {
		return err
	}
	x.door = door
	return nil
}

// closeDoor takes the socket away, so that nothing more comes through it.
func (x *run) closeDoor() {
	if x.door == nil {
		return
	}
	if err := x.door.Close(); err != nil {
		x.log.Warn().Err(err).Msg("the job's socket could not be closed")
	}
	x.door = nil
}

// endChildren ends the subtree below the job and waits for it: with grace at first, then without.
func (x *run) endChildren(kill bool) {
	if x.r.opt.Family == nil {
		return
	}
	grace := x.window() + childrenGrace
	for _, now := range []bool{kill, true} {
		// Children that an ending daemon leaves are the next one's to end.
		ctx, cancel := context.WithTimeout(x.stop, grace)
		err := x.r.opt.Family.EndChildren(ctx, x.job, now)
		cancel()
		if err == nil || x.stop.Err() != nil {
			return
		}
		x.log.Warn().Err(err).Bool("kill", now).Msg("children of the job did not end in time")
		grace = 2*killSlack + giveUp
	}
}

// exhausted says that a budget ran out.
type exhausted struct{ dimension job.Reason }

// overdraw is told by the reading goroutine, once.
func (c *course) overdraw(dimension job.Reason) {
	select {
	case c.over <- exhausted{dimension}:
	default:
	}
}

// store appends output as far as the budget allows and drops the rest; past the last byte the job ends.
func (c *course) store(kind uint8, p []byte) error {
	allowed := int64(len(p))
	if c.meter != nil {
		allowed = c.meter.Debit(allowed)
	}
	if err := c.out.Append(kind, time.Now().UnixNano(), p[:allowed]); err != nil {
		return err
	}
	if allowed < int64(len(p)) {
		c.cut.Store(true)
		c.overdraw(job.ReasonBudgetOutput)
	}
	return nil
}

// nextPoll is when to look at the cgroup again: soon enough that a budget is not overrun by much.
func (c *course) nextPoll() time.Duration {
	if c.r.opt.Family == nil {
		return pollEvery
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.kill), pollEvery)
	defer cancel()
	left, limited := c.r.opt.Family.CPULeft(ctx, c.job, c.peak.CPU)
	if !limited {
		return pollEvery
	}
	if left <= 0 {
		c.overdraw(job.ReasonBudgetCPU)
		return pollEvery
	}
	cores := max((c.posture.MilliCPUs+999)/1000, 1)
	return min(pollEvery, max(left/time.Duration(cores), pollLeast))
}

// pollLeast bounds how often a job near the end of its budget is looked at.
const pollLeast = 20 * time.Millisecond
