package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/results"
	"sandboxd/internal/wire"
)

// resume goes on with a job of an earlier daemon. A job still starting never ran its command: it is queued again. One
// that ran is adopted by its slot's record; where there is nothing to adopt it is lost.
func (x *run) resume() job.Disposition {
	var e envelope.Envelope
	if err := json.Unmarshal(x.job.Envelope, &e); err != nil {
		return x.fail(job.ReasonStartFailed, fmt.Errorf("the stored envelope cannot be read: %w", err))
	}
	x.posture, x.times = e.Posture, x.job.Times
	if !x.awaitEngine() {
		return job.Detached
	}
	ctx, cancel := context.WithTimeout(x.stop, removeTimeout)
	defer cancel()
	rec, found, err := x.r.opt.Slots.Slot(ctx, x.job.ID)
	if err != nil {
		return x.fail(job.ReasonStorage, err)
	}
	if x.job.State == job.Starting {
		if found {
			if err := x.r.opt.Sandbox.RemoveByRecord(ctx, rec); err != nil {
				x.log.Error().Err(err).Msg("what an interrupted start left could not be removed; it is tried again")
			}
		}
		return x.interrupted()
	}
	if !found {
		return x.gone(job.ReasonVanished, "there is no record of its container")
	}
	out, err := x.r.opt.Logs.Reopen(x.job.ID, results.Options{Keep: x.posture.OutputKeep})
	if err != nil {
		return x.gone(job.ReasonOrphaned, "its stream cannot be opened: "+err.Error())
	}
	x.out = out
	slot, held, err := x.r.opt.Sandbox.Adopt(ctx, rec, x.posture, x.position())
	if err != nil {
		if x.stop.Err() != nil {
			_ = out.Detach()
			return job.Detached
		}
		d := x.gone(job.ReasonInitDied, "its init did not come back: "+err.Error())
		clean, cancel := context.WithTimeout(context.WithoutCancel(x.kill), removeTimeout)
		defer cancel()
		if err := x.r.opt.Sandbox.RemoveByRecord(clean, rec); err != nil {
			x.log.Error().Err(err).Msg("its slot could not be removed; it is tried again")
		}
		return d
	}
	x.slot = slot
	defer x.removeSlot()
	ran := time.Duration(max(nowMS()-x.job.Times.Started, 0)) * time.Millisecond
	return x.follow(wire.Boottime()-int64(ran), held)
}

// awaitEngine waits for an engine that is away when the daemon starts: init keeps the job's deadline and what it wrote.
// It reports false when the daemon stops first.
func (x *run) awaitEngine() bool {
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for !x.r.opt.EngineUp() {
		select {
		case <-t.C:
		case <-x.stop.Done():
			return false
		}
	}
	return true
}

// position is the place in init's frames up to which everything is stored: the stream keeps it with its records.
func (x *run) position() wire.Position {
	m, ok := x.out.Committed()
	if !ok {
		// Nothing was acked: of init's frames only ready was taken, by the gate.
		return wire.Position{Seq: 1, Stage: wire.StageReady}
	}
	return wire.Position{Seq: m.Seq, Stage: wire.Stage(m.Stage)}
}

// interrupted gives a job back whose command was never handed over.
func (x *run) interrupted() job.Disposition {
	if x.r.opt.Ledger.MayRetry(x.job) {
		return job.Unclaim
	}
	return x.fail(job.ReasonInterrupted, fmt.Errorf("the daemon ended %d times while it was starting", x.job.Attempt))
}

// gone ends a job that ran and of which nothing more can be learnt.
func (x *run) gone(reason job.Reason, detail string) job.Disposition {
	x.times.Finished = nowMS()
	return x.commit(job.Ended{Outcome: job.Outcome{Status: job.Lost, Reason: reason, Detail: detail}, Result: x.result(nil), Times: x.times})
}
