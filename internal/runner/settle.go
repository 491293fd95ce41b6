package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// settle turns init's last word into the terminal record. Order: figures while the container is there, stream closed,
// record committed, ack, end; the slot is removed by the recipe's undo.
func (c *course) settle(ex wire.Exited, seq uint64) job.Disposition {
	c.sample()
	c.times.Finished = nowMS()
	c.closeDoor()
	c.endChildren(c.asked != nil && c.asked.GraceMS == 0)
	e := job.Ended{Outcome: c.outcome(ex), Times: c.times}
	e.Result = c.result(&ex)
	e.Measured = c.measured(e.Result.Usage)
	if fault := c.compare(ex); !c.cut.Load() && fault != "" && e.Result.Stream != nil {
		e.Result.Stream.Fault = fault
		c.log.Error().Str("fault", fault).Msg("the stored output is not what init sent")
	}
	d := c.commit(e)
	if d != job.Settled {
		return d
	}
	conn := c.slot.Conn()
	if err := send(conn, wire.Ack{Seq: seq}); err == nil {
		_ = send(conn, wire.End{})
	}
	return d
}

// outcome reads the evidence. Where several hold: cancelled > timeout > oom > exit; all evidence is kept.
func (c *course) outcome(ex wire.Exited) job.Outcome {
	o := job.Outcome{KilledBy: ex.Cause, LeftKilled: ex.LeftKilled, OOMKilled: c.peak.OOMKills > 0 || c.sockets}
	o.TimedOut = ex.Cause == wire.CauseDeadline || c.deadHit && c.rung >= 2
	ended := c.cause != nil && ex.Cause == wire.CauseCancel || c.spent != "" || o.TimedOut
	if se := ex.StartError; se != nil && (!ended || se.Op != wire.OpStub) {
		return startFailed(o, *se)
	}
	if ex.StartError != nil {
		// It was ended before its exec: it has neither signal nor code.
	} else if ex.Signal > 0 {
		o.Signal, o.SignalName = ex.Signal, unix.SignalName(unix.Signal(ex.Signal))
	} else {
		code := ex.Code
		o.ExitCode = &code
	}
	switch {
	case c.cause != nil && (ex.Cause == wire.CauseCancel || c.rung >= 2):
		o.Status, o.Reason = job.Cancelled, c.cause.Reason
		o.KilledBy = wire.CauseCancel
	case c.spent != "":
		o.Status, o.Reason, o.KilledBy = job.BudgetExhausted, c.spent, ""
	case o.TimedOut:
		o.Status, o.Reason = job.Timeout, job.ReasonWallClock
	case o.OOMKilled && (ex.Signal > 0 || ex.Code != 0):
		o.Status, o.Reason = job.ErrorStatus, job.ReasonOOM
		o.Detail = fmt.Sprintf("the kernel killed %d of its processes at the memory limit of %d MiB", c.peak.OOMKills, c.posture.Memory>>20)
		if c.sockets {
			o.Detail = fmt.Sprintf("its sockets held %d MiB of the kernel's memory, at a memory limit of %d MiB", c.peak.Sockets>>20, c.posture.Memory>>20)
		}
	case ex.Signal > 0:
		o.Status, o.Reason = job.ErrorStatus, job.ReasonSignal
	case ex.Code != 0:
		o.Status, o.Reason = job.ErrorStatus, job.ReasonExit
	default:
		o.Status = job.Success
	}
	return o
}

func startFailed(o job.Outcome, se wire.StartError) job.Outcome {
	o.Detail = se.Text
	code := func(n int) *int { return &n }
	switch se.Op {
	case wire.OpLookup:
		o.Status, o.Reason, o.ExitCode = job.ErrorStatus, job.ReasonNotFound, code(job.ExitNotFound)
	case wire.OpExec:
		o.Status, o.Reason, o.ExitCode = job.ErrorStatus, job.ReasonNotExecutable, code(job.ExitNotExecutable)
	case wire.OpChdir:
		o.Status, o.Reason = job.Failed, job.ReasonWorkdir
	default:
		o.Status, o.Reason = job.Failed, job.ReasonStartFailed
	}
	return o
}

// compare holds what was stored to init's own count and checksum.
func (c *course) compare(ex wire.Exited) string {
	stdout, stderr := c.out.Sums()
	if differs(stdout, ex.Stdout) {
		return fmt.Sprintf("stdout: init sent %d bytes (crc %08x), stored %d (crc %08x)", ex.Stdout.Bytes, ex.Stdout.CRC32C, stdout.Bytes, stdout.CRC32C)
	}
	if differs(stderr, ex.Stderr) {
		return fmt.Sprintf("stderr: init sent %d bytes (crc %08x), stored %d (crc %08x)", ex.Stderr.Bytes, ex.Stderr.CRC32C, stderr.Bytes, stderr.CRC32C)
	}
	return ""
}

func differs(a results.Sum, b wire.StreamSum) bool { return a.Bytes != b.Bytes || a.CRC32C != b.CRC32C }

// result gathers what a job returned; ex is nil where init never said how it ended.
func (x *run) result(ex *wire.Exited) job.Result {
	var r job.Result
	s := x.job.Spec
	if s.Role != "" || len(s.Skills) > 0 {
		r.Delegation = &job.Delegation{Role: s.Role, Skills: s.Skills, Source: x.job.Owner}
	}
	if x.slot != nil {
		r.Gate = x.slot.Record().Evidence
	}
	if x.out != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(x.kill), commitTimeout)
		defer cancel()
		info, err := x.out.Close(ctx)
		if err != nil {
			x.log.Error().Err(err).Msg("the stream could not be closed")
			info.Fault = err.Error()
			_ = x.out.Detach()
		}
		r.Stream = &info
		r.Usage.OutputBytes = &info.Bytes
		tail := x.out.Tail()
		r.Summary, r.SummaryTruncated, r.SummaryRunes = results.Headline(tail, info.Stdout > int64(len(tail)))
	}
	if ex != nil {
		wall := ex.WallNS / 1e6
		r.Usage.WallMS, r.Usage.ActiveMS = &wall, &wall
	}
	return r
}

// result adds the kernel's figures.
func (c *course) result(ex *wire.Exited) job.Result {
	r := c.run.result(ex)
	if c.peak != (sandbox.Readings{}) {
		cpu := c.peak.CPU.Milliseconds()
		r.Usage.CPUMS = &cpu
	}
	mem := c.peak.MemoryPeak
	if ex != nil {
		// A job shorter than a poll: the kernel's figure of its largest process is the better one.
		mem = max(mem, ex.Rusage.MaxRSSKiB<<10)
	}
	if mem > 0 {
		r.Usage.MemoryPeak = &mem
	}
	return r
}

// commit stores the end. Where somebody else ended the job that record stands. While the ledger cannot be written it is
// tried again; a daemon that stops first leaves the slot as it is, and init keeps its last word for the next one.
func (x *run) commit(e job.Ended) job.Disposition {
	for {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(x.kill), commitTimeout)
		err := x.r.opt.Ledger.Finish(ctx, x.job, x.from, e)
		cancel()
		switch {
		case err == nil:
			return job.Settled
		case x.r.opt.Ledger.Fenced(err) && x.standsElsewhere():
			continue
		case x.r.opt.Ledger.Fenced(err):
			x.log.Warn().Err(err).Msg("the job was ended by somebody else")
			return job.Settled
		}
		x.log.Error().Err(err).Msg("the end of the job could not be committed; it is tried until the daemon stops")
		select {
		case <-time.After(retryEvery):
		case <-x.stop.Done():
			x.slot = nil
			return job.Detached
		}
		x.endChildren(true) // the ledger ends no job before its children
	}
}

// standsElsewhere reports whether the job has not ended but is in another state than this run thought: a move between
// running and waiting that could not be written when it was made.
func (x *run) standsElsewhere() bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.kill), commitTimeout)
	defer cancel()
	now, err := x.r.opt.Ledger.Standing(ctx, x.job)
	if err != nil || now == job.Done || now == x.from {
		return false
	}
	x.from = now
	return true
}

// lost ends a job without init's word; the container is over.
func (c *course) lost(reason job.Reason, detail string) job.Disposition {
	return c.abandon(job.Lost, reason, detail)
}

// abandon kills what may still run and commits an end that init did not report.
func (c *course) abandon(status job.Status, reason job.Reason, detail string) job.Disposition {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.kill), killSlack)
	defer cancel()
	c.sample()
	if err := c.slot.Kill(ctx); err != nil {
		c.log.Error().Err(err).Msg("the container could not be killed")
	}
	c.quit()
	c.times.Finished = nowMS()
	o := job.Outcome{Status: status, Reason: reason, Detail: detail, OOMKilled: c.peak.OOMKills > 0, TimedOut: c.deadHit}
	switch {
	case c.cause != nil:
		o.Status, o.Reason, o.KilledBy = job.Cancelled, c.cause.Reason, wire.CauseCancel
	case c.spent != "":
		o.Status, o.Reason = job.BudgetExhausted, c.spent
	}
	c.closeDoor()
	c.endChildren(true)
	r := c.result(nil)
	return c.commit(job.Ended{Outcome: o, Result: r, Times: c.times, Measured: c.measured(r.Usage)})
}

// measured is what the job itself used of the dimensions the daemon measures.
func (c *course) measured(u job.Usage) map[string]int64 {
	m := map[string]int64{}
	for dimension, v := range map[string]*int64{"wall_ms": u.WallMS, "cpu_ms": u.CPUMS, "output_bytes": u.OutputBytes, "artifact_bytes": u.ArtifactBytes} {
		if v != nil {
			m[dimension] = *v
		}
	}
	return m
}

// fail ends a job that never ran, for a fault of ours or of the engine.
func (x *run) fail(reason job.Reason, err error) job.Disposition {
	x.times.Finished = nowMS()
	e := job.Ended{Outcome: job.Outcome{Status: job.Failed, Reason: reason, Detail: err.Error()}, Times: x.times}
	e.Result = x.result(nil)
	e.Result.Evidence = evidence(err)
	x.log.Warn().Err(err).Str("reason", string(reason)).Msg("a job failed")
	return x.commit(e)
}

// notStarted ends or gives back a job whose command was never handed over.
func (x *run) notStarted(setup context.Context, err error) job.Disposition {
	x.dropStream()
	var cause *job.CancelCause
	switch {
	case errors.As(context.Cause(setup), &cause):
		x.times.Finished = nowMS()
		return x.commit(job.Ended{Outcome: job.Outcome{Status: job.Cancelled, Reason: cause.Reason, Detail: "cancelled before the command started"}, Result: x.result(nil), Times: x.times})
	case x.stop.Err() != nil:
		return job.Unclaim
	case sandbox.Passing(err) && x.r.opt.Ledger.MayRetry(x.job):
		x.log.Warn().Err(err).Msg("the engine was not ready; the job is queued again")
		return job.Unclaim
	}
	return x.fail(reasonOf(err), err)
}

// dropStream takes away the stream of a job whose command was never handed over: another attempt makes its own.
func (x *run) dropStream() {
	if x.out == nil {
		return
	}
	_ = x.out.Detach()
	x.out = nil
	if err := x.r.opt.Logs.Remove(x.job.ID); err != nil {
		x.log.Warn().Err(err).Msg("the empty stream of a job that did not start could not be removed")
	}
}

func reasonOf(err error) job.Reason {
	var gate *sandbox.GateError
	switch {
	case errors.As(err, &gate):
		return job.ReasonGateFailed
	case job.CodeOf(err) == job.CodeWorkspace:
		return job.ReasonMountFailed
	case job.CodeOf(err) == job.CodeImage:
		return job.ReasonImagePull
	case sandbox.Passing(err):
		return job.ReasonEngineError
	}
	return job.ReasonStartFailed
}

func evidence(err error) []string {
	var gate *sandbox.GateError
	if errors.As(err, &gate) {
		return gate.Findings
	}
	return []string{err.Error()}
}
