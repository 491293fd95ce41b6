package store

import (
	"context"
	"time"
)

// batch runs first and whatever else waits in one transaction.
func (w *writer) batch(first *request) {
	began := time.Now()
	t := &tx{conn: w.conn}
	var replies []reply
	err := w.begin()
	for r := first; r != nil; r = w.next(len(replies), began) {
		if !r.state.CompareAndSwap(0, taken) {
			continue
		}
		var verdict error
		if err == nil {
			verdict, err = w.decide(t, r)
		}
		replies = append(replies, reply{r, verdict})
	}
	if err = w.commit(err); err == nil && t.announces {
		w.store.announce()
	}
	for _, p := range replies {
		if err != nil {
			p.verdict = err
		}
		p.done <- p.verdict
	}
}

type reply struct {
	*request
	verdict error
}

// next returns a request that waits already, nil when none does or the batch is full.
func (w *writer) next(n int, began time.Time) *request {
	if n >= maxBatch || time.Since(began) >= maxBatchTime {
		return nil
	}
	select {
	case r := <-w.requests: // nil when closed
		return r
	default:
		return nil
	}
}

func (w *writer) begin() error {
	if err := w.store.failure(); err != nil {
		return err
	}
	return w.run1("BEGIN IMMEDIATE")
}

// decide runs one decision in its savepoint. verdict is the decision's own; err means that the whole transaction is
// gone (SQLite rolls back by itself when the disk is full or fails).
func (w *writer) decide(t *tx, r *request) (verdict, err error) {
	if err := w.run1("SAVEPOINT decision"); err != nil {
		return nil, err
	}
	announced := t.announces
	if verdict = r.decide(t); verdict != nil {
		t.announces = announced
		if faultOf(verdict) == fatal {
			return verdict, verdict
		}
		if err := w.run1("ROLLBACK TO decision"); err != nil {
			return verdict, rootFault(verdict, err)
		}
	}
	return verdict, w.run1("RELEASE decision")
}

// rootFault picks what the whole batch is told: the fault of SQLite that ended the transaction, not the words of one
// decision to its own caller.
func rootFault(verdict, rollback error) error {
	if f := faultOf(verdict); f == retryable || f == fatal {
		return verdict
	}
	return rollback
}

// commit makes the batch durable, or undoes it where err says that it already failed.
func (w *writer) commit(err error) error {
	if err == nil {
		if err = w.run1("COMMIT"); err == nil {
			return nil
		}
	}
	if faultOf(err) == fatal {
		w.store.fail(err)
	}
	_ = w.run1("ROLLBACK") // fails where SQLite has rolled back or never begun; either way nothing is open
	return err
}

func (w *writer) run1(text string) error {
	_, err := w.conn.exec(context.Background(), text)
	return err
}

// tendLog moves the log into the database file when it has grown. Its failure is as fatal as that of a commit; a full
// disk only lets the log grow until there is room.
func (w *writer) tendLog() {
	if w.store.failure() != nil {
		return
	}
	frames, err := w.conn.logFrames("NOOP")
	if err == nil && frames >= checkpointAt {
		err = w.conn.checkpoint("PASSIVE")
	}
	switch {
	case err == nil:
	case faultOf(err) == fatal:
		w.store.fail(err)
	default:
		w.store.log.Warn().Err(err).Msg("the log of the state database could not be moved; trying again")
	}
}
