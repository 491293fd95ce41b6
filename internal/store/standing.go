package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"sandboxd/internal/job"
)

// standing is what the guard of a transition needs to know of a job.
type standing struct {
	id, root     job.ID
	parent       job.ID // "" for a root
	owner        string
	uid          uint32
	state        job.State
	attempt      int
	node         string
	bytes        int64 // of its spec
	cancelReason job.Reason
	cancelKill   bool
	times        job.Times
}

// standing reads a job inside the transaction, or sql.ErrNoRows.
func (t *tx) standing(id job.ID) (s standing, err error) {
	s.id = id
	err = t.row(`SELECT root, parent, owner, owner_uid, state, attempt, node, bytes, cancel_reason, cancel_kill, queued, prepared, started, finished, settled
 FROM jobs WHERE id = $1`, []any{id}, &s.root, &s.parent, &s.owner, &s.uid, &s.state, &s.attempt, &s.node, &s.bytes, &s.cancelReason, &s.cancelKill,
		&s.times.Queued, &s.times.Prepared, &s.times.Started, &s.times.Finished, &s.times.Settled)
	return s, err
}

// held reads a job that its decider believes to be in a state and attempt; ErrFenced when it is not, or is gone.
// attempt 0 stands for any.
func (t *tx) held(id job.ID, attempt int, from job.State) (standing, error) {
	s, err := t.standing(id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return s, fmt.Errorf("%w: job %s is gone", ErrFenced, id)
	case err != nil:
		return s, err
	case s.state != from || attempt != 0 && s.attempt != attempt:
		return s, fmt.Errorf("%w: job %s is %s in attempt %d, not %s in attempt %d", ErrFenced, id, s.state, s.attempt, from, attempt)
	}
	return s, nil
}

// changed checks that a guarded UPDATE hit its row. On SQLite it always does, after held; where several writers share a
// database the guard in the UPDATE is what decides.
func changed(n int64, err error, id job.ID) error {
	if err == nil && n != 1 {
		return fmt.Errorf("%w: job %s was moved by another", ErrFenced, id)
	}
	return err
}

// tell writes the event of a job.
func (t *tx) tell(s standing, nowMS int64, kind string, payload map[string]string) error {
	return t.event(s.owner, nowMS, s.id, s.root, kind, payload)
}

// end moves a job to done, with the counters, the settling of its budget and the event that go with it. times are
// final. All ends pass here. The tree is changed first: where several writers share a database that orders them.
func (t *tx) end(s standing, o job.Outcome, r job.Result, times job.Times, u use) error {
	ended := max(times.Finished, times.Settled)
	if _, err := t.exec(`UPDATE trees SET version = version + 1, jobs_live = jobs_live - 1, bytes = bytes + $1,
 ended = CASE WHEN jobs_live = 1 THEN $2 ELSE 0 END WHERE root = $3`, keptBytes(r), ended, s.root); err != nil {
		return err
	}
	if err := t.checkNoneBelow(s.id); err != nil {
		return err
	}
	if err := t.writeEnd(s, o, r, times); err != nil {
		return err
	}
	if s.state == job.Queued {
		if err := t.dequeue(s); err != nil {
			return err
		}
	}
	if err := t.settle(s, u); err != nil {
		return err
	}
	return t.tell(s, ended, string(job.Done), endPayload(o))
}

// writeEnd writes the terminal record.
func (t *tx) writeEnd(s standing, o job.Outcome, r job.Result, times job.Times) error {
	outcome, err := encode(o)
	if err != nil {
		return err
	}
	result, err := encode(r)
	if err != nil {
		return err
	}
	n, err := t.exec(`UPDATE jobs SET state = 'done', outcome = $1, queued = $2, prepared = $3, started = $4, finished = $5, settled = $6
 WHERE id = $7 AND attempt = $8 AND state = $9`,
		outcome, times.Queued, times.Prepared, times.Started, times.Finished, times.Settled, s.id, s.attempt, s.state)
	if err := changed(n, err, s.id); err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO results(job, result) VALUES ($1, $2)`, s.id, result)
	return err
}

// keptBytes is what an ended job keeps on disk beside its spec.
func keptBytes(r job.Result) (n int64) {
	if r.Stream != nil {
		n += r.Stream.Kept
	}
	if r.Usage.ArtifactBytes != nil {
		n += *r.Usage.ArtifactBytes
	}
	return n
}

func endPayload(o job.Outcome) map[string]string {
	m := payload("status", string(o.Status), "reason", string(o.Reason))
	if o.ExitCode != nil {
		m["exit_code"] = strconv.Itoa(*o.ExitCode)
	}
	return m
}
