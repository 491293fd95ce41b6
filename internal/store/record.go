package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// Columns of a job, without and with the parts that may be large.
const (
	recordColumns = `j.id, j.root, j.parent, j.depth, j.owner, j.owner_uid, j.owner_gid, j.owner_groups, j.state, j.attempt,
 j.node, j.epoch, j.cancel_reason, j.cancel_kill, j.idem_key, j.queued, j.prepared, j.started, j.finished, j.settled,
 j.outcome, coalesce(r.result, ''), coalesce(b.given, ''), s.spec, s.envelope`
	recordTables = ` FROM jobs j JOIN specs s ON s.job = j.id LEFT JOIN results r ON r.job = j.id LEFT JOIN budgets b ON b.job = j.id WHERE j.id = $1`
	queryRecord  = `SELECT ` + recordColumns + recordTables
	queryJob     = `SELECT ` + recordColumns + `, s.rest, s.stdin` + recordTables
)

// specText is a Spec as stored: the words every reading needs, and apart from them those that may be large.
type specText struct {
	spec, rest string
	stdin      []byte
}

// specRest is what listings leave out.
type specRest struct {
	Task *job.Task    `json:"task,omitempty"`
	Env  []job.EnvVar `json:"env,omitempty"`
}

func encodeSpec(s job.Spec) (t specText, err error) {
	t.stdin = s.StdinData
	if s.Task != nil || len(s.Env) > 0 {
		if t.rest, err = encode(specRest{s.Task, s.Env}); err != nil {
			return t, err
		}
	}
	s.StdinData, s.Task, s.Env = nil, nil, nil
	t.spec, err = encode(s)
	return t, err
}

func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// decode leaves v alone where the column is empty.
func decode(column, text string, v any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("column %s does not hold what we wrote: %w", column, err)
	}
	return nil
}

// posture returns what the scheduler needs of a frozen envelope.
func posture(raw json.RawMessage) (milliCPUs, memory int64, err error) {
	if len(raw) == 0 {
		return 0, 0, nil
	}
	var e envelope.Envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return 0, 0, fmt.Errorf("the envelope is not an envelope: %w", err)
	}
	return e.Posture.MilliCPUs, e.Posture.Memory, nil
}

type scanner interface{ Scan(into ...any) error }

// scanRecord reads one row of queryRecord; more are the columns after those.
func scanRecord(row scanner, more ...any) (j job.Job, bytes int, err error) {
	var groups, outcome, result, budget, spec, env string
	var g given
	into := []any{&j.ID, &j.Root, &j.Parent, &j.Depth, &j.Owner, &j.OwnerUID, &j.OwnerGID, &groups, &j.State, &j.Attempt,
		&j.Node, &j.Epoch, &j.CancelReason, &j.CancelKill, &j.IdempotencyKey, &j.Times.Queued, &j.Times.Prepared, &j.Times.Started,
		&j.Times.Finished, &j.Times.Settled, &outcome, &result, &budget, &spec, &env}
	if err := row.Scan(append(into, more...)...); err != nil {
		return job.Job{}, 0, err
	}
	if env != "" {
		j.Envelope = json.RawMessage(env)
	}
	err = errors.Join(decode("owner_groups", groups, &j.Groups), decode("outcome", outcome, &j.Outcome),
		decode("result", result, &j.Result), decode("given", budget, &g), decode("spec", spec, &j.Spec))
	j.Grants, j.Clamped = g.Grants, g.Clamped
	return j, len(outcome) + len(result) + len(spec) + len(env), err
}

// scanJob reads one row of queryJob.
func scanJob(row scanner) (job.Job, error) {
	var rest string
	var stdin []byte
	j, _, err := scanRecord(row, &rest, &stdin)
	if err != nil {
		return job.Job{}, err
	}
	var r specRest
	if err := decode("rest", rest, &r); err != nil {
		return job.Job{}, err
	}
	j.Spec.Task, j.Spec.Env, j.Spec.StdinData = r.Task, r.Env, stdin
	return j, nil
}

// Job implements Reader.
func (s *SQLite) Job(ctx context.Context, id job.ID) (job.Job, error) {
	if err := s.ready(); err != nil {
		return job.Job{}, err
	}
	j, err := scanJob(s.read.stmts[queryJob].QueryRowContext(ctx, id))
	if errors.Is(err, sql.ErrNoRows) {
		return job.Job{}, notFound(string(id))
	}
	return j, s.explain("reading a job", err)
}

func notFound(ref string) error {
	return job.Errorf(job.CodeNotFound, "", "no job %.64q", ref).WithHint("see 'sbx ps --all'")
}
