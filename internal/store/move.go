package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"sandboxd/internal/job"
)

// Claim implements Ledger.
func (s *SQLite) Claim(ctx context.Context, id job.ID, c Claim) (job.Job, error) {
	if c.Node == "" || c.NowMS <= 0 {
		return job.Job{}, errors.New("store: claim: node or time is missing")
	}
	err := s.do(ctx, "claim", func(t *tx) error {
		st, err := t.held(id, 0, job.Queued)
		if err != nil {
			return err
		}
		n, err := t.exec(`UPDATE jobs SET state = 'starting', node = $1, epoch = $2 WHERE id = $3 AND attempt = $4 AND state = 'queued'`, c.Node, c.Epoch, id, st.attempt)
		if err := changed(n, err, id); err != nil {
			return err
		}
		if err := t.dequeue(st); err != nil {
			return err
		}
		return t.tell(st, c.NowMS, string(job.Starting), payload("attempt", strconv.Itoa(st.attempt)))
	})
	if err != nil {
		return job.Job{}, err
	}
	return s.Job(context.WithoutCancel(ctx), id)
}

// Move implements Ledger.
func (s *SQLite) Move(ctx context.Context, m Move) error {
	if err := checkMove(m); err != nil {
		return fmt.Errorf("store: move: %w", err)
	}
	return s.do(ctx, "move", func(t *tx) error {
		st, err := t.held(m.ID, m.Attempt, m.From)
		if err != nil {
			return err
		}
		if m.To == job.Queued {
			return t.unclaim(st, m)
		}
		times := st.times
		if m.Prepared != 0 {
			times.Prepared = m.Prepared
		}
		if m.To == job.Running && times.Started == 0 {
			times.Started = m.NowMS
		}
		n, err := t.exec(`UPDATE jobs SET state = $1, prepared = $2, started = $3 WHERE id = $4 AND attempt = $5 AND state = $6`,
			m.To, times.Prepared, times.Started, m.ID, m.Attempt, m.From)
		if err := changed(n, err, m.ID); err != nil {
			return err
		}
		return t.tell(st, m.NowMS, string(m.To), nil)
	})
}

func checkMove(m Move) error {
	if err := job.CheckTransition(m.From, m.To); err != nil {
		return err
	}
	switch {
	case m.To == job.Starting:
		return errors.New("only Claim moves a job to starting")
	case m.To == job.Done:
		return errors.New("only Finish and Cancel move a job to done")
	case m.Attempt <= 0 || m.NowMS <= 0:
		return errors.New("attempt or time is missing")
	}
	return nil
}

// unclaim puts a job back into its queue, for the next attempt. One that somebody wished to cancel meanwhile ends here:
// no job in the queue carries a cancel.
func (t *tx) unclaim(st standing, m Move) error {
	if st.cancelReason != "" {
		return t.endUnstarted(st, st.cancelReason, m.NowMS)
	}
	n, err := t.exec(`UPDATE jobs SET state = 'queued', attempt = attempt + 1, prepared = 0, started = 0 WHERE id = $1 AND attempt = $2 AND state = $3`, m.ID, m.Attempt, m.From)
	if err := changed(n, err, m.ID); err != nil {
		return err
	}
	if _, _, err := t.enqueue(st.node, st.uid, st.bytes); err != nil {
		return err
	}
	return t.tell(st, m.NowMS, string(job.Queued), payload("attempt", strconv.Itoa(st.attempt+1)))
}

// Finish implements Ledger.
func (s *SQLite) Finish(ctx context.Context, f Finish) error {
	if err := checkFinish(f); err != nil {
		return fmt.Errorf("store: finish: %w", err)
	}
	return s.do(ctx, "finish", func(t *tx) error {
		st, err := t.held(f.ID, f.Attempt, f.From)
		if err != nil {
			return err
		}
		times := mergeTimes(st.times, f.Times)
		u := use{started: times.Started != 0, measured: f.Measured, reported: f.Reported, chargeUnreported: f.ChargeUnreported}
		return t.end(st, f.Outcome, f.Result, times, u)
	})
}

func checkFinish(f Finish) error {
	if err := job.CheckTransition(f.From, job.Done); err != nil {
		return err
	}
	switch {
	case f.Attempt <= 0:
		return errors.New("the attempt is missing")
	case f.Outcome.Status == "":
		return errors.New("the outcome has no status")
	case f.Times.Finished <= 0 && f.Times.Settled <= 0:
		return errors.New("neither the time of finishing nor that of settling is given")
	}
	return nil
}

// mergeTimes lets the times given win over those stored; a job that only settled finished then.
func mergeTimes(stored, given job.Times) job.Times {
	pick := func(stored *int64, given int64) {
		if given != 0 {
			*stored = given
		}
	}
	pick(&stored.Queued, given.Queued)
	pick(&stored.Prepared, given.Prepared)
	pick(&stored.Started, given.Started)
	pick(&stored.Finished, given.Finished)
	pick(&stored.Settled, given.Settled)
	if stored.Finished == 0 {
		stored.Finished = stored.Settled
	}
	return stored
}
