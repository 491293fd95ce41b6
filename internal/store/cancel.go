package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"sandboxd/internal/job"
)

// Cancel implements Ledger.
func (s *SQLite) Cancel(ctx context.Context, id job.ID, c Cancel) (_ job.Job, ended bool, err error) {
	if c.Reason == "" || c.NowMS <= 0 {
		return job.Job{}, false, errors.New("store: cancel: reason or time is missing")
	}
	err = s.do(ctx, "cancel", func(t *tx) error {
		ended = false
		st, err := t.standing(id)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound(string(id))
		case err != nil || st.state == job.Done:
			return err
		}
		news, err := t.wish(st, c)
		if err != nil || !news || st.state != job.Queued {
			return err
		}
		ended = true
		return t.endUnstarted(st, c.Reason, c.NowMS)
	})
	if err != nil {
		return job.Job{}, false, err
	}
	j, err := s.Job(context.WithoutCancel(ctx), id)
	return j, ended, err
}

// wish stores a cancel: the first reason stays, kill is only ever added. It reports whether that changed anything.
func (t *tx) wish(st standing, c Cancel) (news bool, err error) {
	if st.cancelReason != "" && (st.cancelKill || !c.Kill) {
		return false, nil
	}
	reason := st.cancelReason
	if reason == "" {
		reason = c.Reason
	}
	n, err := t.exec(`UPDATE jobs SET cancel_reason = $1, cancel_kill = $2 WHERE id = $3 AND attempt = $4 AND state = $5`,
		reason, bit(c.Kill || st.cancelKill), st.id, st.attempt, st.state)
	if err := changed(n, err, st.id); err != nil {
		return false, err
	}
	return true, t.tell(st, c.NowMS, "cancel_requested", payload("reason", string(reason), "by", c.By, "kill", strconv.FormatBool(c.Kill)))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// endUnstarted ends a job whose command never ran as cancelled.
func (t *tx) endUnstarted(st standing, why job.Reason, nowMS int64) error {
	times := st.times
	times.Finished, times.Settled = nowMS, nowMS
	o := job.Outcome{Status: job.Cancelled, Reason: why, Detail: "cancelled before it started"}
	return t.end(st, o, job.Result{}, times, use{})
}
