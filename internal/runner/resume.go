package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/results"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// resume goes on with a job of an earlier daemon. A job still starting never ran its command: it is queued again. One
// that ran is adopted by its slot's record; where there is nothing to adopt it is lost. Whatever ends here, its slot is
// taken away.
func (x *run) resume() job.Disposition {
	x.times = x.job.Times
	if !x.awaitEngine() {
		return job.Detached
	}
	ctx, cancel := context.WithTimeout(x.stop, removeTimeout)
	defer cancel()
	rec, found, err := x.r.opt.Slots.Slot(ctx, x.job.ID)
	if err != nil {
		return x.fail(job.ReasonStorage, err)
	}
	d := x.resumeWith(ctx, rec, found)
	if found && x.slot == nil && d != job.Detached {
		x.removeRecord(rec)
	}
	return d
}

func (x *run) resumeWith(ctx context.Context, rec sandbox.SlotRecord, found bool) job.Disposition {
	var e envelope.Envelope
	if err := json.Unmarshal(x.job.Envelope, &e); err != nil {
		return x.fail(job.ReasonStartFailed, fmt.Errorf("the stored envelope cannot be read: %w", err))
	}
	x.posture = e.Posture
	if x.job.State == job.Starting {
		if x.r.opt.Ledger.MayRetry(x.job) {
			return job.Unclaim
		}
		return x.fail(job.ReasonInterrupted, fmt.Errorf("the daemon ended %d times while it was starting", x.job.Attempt))
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
	switch {
	case err != nil && x.stop.Err() != nil:
		_ = out.Detach()
		return job.Detached
	case err != nil && x.r.opt.Images.Gone(err):
		return x.gone(job.ReasonVanished, "its container is gone")
	case err != nil:
		return x.gone(job.ReasonInitDied, "its init did not come back: "+err.Error())
	}
	x.slot = slot
	defer x.removeSlot()
	return x.adopted(held)
}

// adopted goes on where init stands. An init that never got the start message gets it now: its stub still waits, so the
// command runs once.
func (x *run) adopted(held wire.Held) job.Disposition {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.kill), commitTimeout)
	defer cancel()
	if err := x.slot.Thaw(ctx); err != nil {
		x.log.Warn().Err(err).Msg("the job could not be thawed")
	}
	if x.from == job.Waiting {
		if err := x.r.opt.Ledger.Awake(ctx, x.job); err != nil {
			x.log.Warn().Err(err).Msg("the job's wait could not be ended in the ledger")
		} else {
			x.from = job.Running
		}
	}
	if err := x.openUp(); err != nil {
		x.log.Error().Err(err).Msg("the job's socket could not be opened again")
	}
	if !held.Started {
		if err := x.r.opt.Ledger.HandingOver(ctx, x.job); err != nil {
			return x.fail(job.ReasonStorage, err)
		}
		if err := send(x.slot.Conn(), x.startMessage()); err != nil {
			return x.fail(job.ReasonStartFailed, fmt.Errorf("handing the command to init: %w", err))
		}
		held.Started = true
	}
	return x.follow(held)
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

// gone ends a job that ran and of which nothing more can be learnt. A cancel that was stored is why.
func (x *run) gone(reason job.Reason, detail string) job.Disposition {
	x.times.Finished = nowMS()
	x.endChildren(true)
	o := job.Outcome{Status: job.Lost, Reason: reason, Detail: detail}
	var cause *job.CancelCause
	if errors.As(context.Cause(x.kill), &cause) {
		o.Status, o.Reason, o.KilledBy = job.Cancelled, cause.Reason, wire.CauseCancel
	}
	e := job.Ended{Outcome: o, Result: x.result(nil), Times: x.times, Measured: map[string]int64{}}
	if written := e.Result.Usage.OutputBytes; written != nil {
		e.Measured["output_bytes"] = *written
	}
	return x.commit(e)
}

func (x *run) removeRecord(rec sandbox.SlotRecord) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.kill), removeTimeout)
	defer cancel()
	if err := x.r.opt.Sandbox.RemoveByRecord(ctx, rec); err != nil {
		x.log.Error().Err(err).Str("slot", rec.Slot).Msg("what the job left could not be removed; it is tried again")
	}
}
