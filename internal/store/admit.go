package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

// Admit implements Ledger.
func (s *SQLite) Admit(ctx context.Context, a Admission) (job.Job, bool, error) {
	row, err := s.newAdmission(a)
	if err != nil {
		return job.Job{}, false, err
	}
	var first job.ID
	err = s.do(ctx, "admit", func(t *tx) (err error) {
		if first, err = row.earlier(t); err != nil || first != "" {
			return err
		}
		return row.insert(t)
	})
	if err != nil {
		return job.Job{}, false, err
	}
	if first == "" {
		return row.Job, true, nil
	}
	j, err := s.Job(context.WithoutCancel(ctx), first)
	return j, false, err
}

// admissionRow is an admission with everything encoded, so that the writer only writes.
type admissionRow struct {
	Admission
	spec              specText
	groups            string
	principal         string // of the idempotency key
	bytes             int64
	milliCPUs, memory int64
	grant             budget.Grant // decided in the transaction
	given             string
}

func (s *SQLite) newAdmission(a Admission) (*admissionRow, error) {
	j := &a.Job
	if j.State == "" {
		j.State = job.Queued
	}
	if j.Attempt == 0 {
		j.Attempt = 1
	}
	if j.Node == "" {
		j.Node = s.node
	}
	if a.MaxQueuedBytesPerUID == 0 {
		a.MaxQueuedBytesPerUID = DefaultQueuedBytesPerUID
	}
	if err := checkAdmission(a); err != nil {
		return nil, fmt.Errorf("store: admit: %w", err)
	}
	row := &admissionRow{Admission: a, principal: j.Owner}
	if j.Parent != "" {
		row.principal = "job:" + string(j.Parent)
	}
	var errGroups, errSpec, errPosture error
	if len(j.Groups) > 0 {
		row.groups, errGroups = encode(j.Groups)
	}
	row.spec, errSpec = encodeSpec(j.Spec)
	row.milliCPUs, row.memory, errPosture = posture(j.Envelope)
	if err := errors.Join(errGroups, errSpec, errPosture); err != nil {
		return nil, fmt.Errorf("store: admit: %w", err)
	}
	row.bytes = int64(len(row.spec.spec) + len(row.spec.rest) + len(row.spec.stdin) + len(j.Envelope))
	return row, nil
}

// checkAdmission refuses what only a fault of ours can produce.
func checkAdmission(a Admission) error {
	j := a.Job
	switch {
	case j.ID == "" || j.Root == "" || j.Owner == "" || j.Owner == allOwners:
		return errors.New("a job needs an id, a root and an owner")
	case (j.Parent == "") != (j.Root == j.ID):
		return errors.New("a job is its own root exactly if it has no parent")
	case j.State != job.Queued || j.Outcome != nil || j.Result != nil || j.CancelReason != "":
		return errors.New("only a fresh queued job can be admitted")
	case j.Times.Queued <= 0:
		return errors.New("the time of queueing is missing")
	case a.MaxQueued <= 0 || a.MaxQueuedPerUID <= 0 || a.MaxQueuedBytesPerUID < 0:
		return errors.New("a bound of the queue is 0, which is invalid and never means unlimited")
	case a.Caps != TreeCaps{} && (a.Caps.MaxJobs <= 0 || a.Caps.MaxLive <= 0):
		return errors.New("a bound of the tree is 0, which is invalid and never means unlimited")
	}
	return checkBudget(a)
}

// earlier returns the job the same caller submitted under the same key, "" for none.
func (a *admissionRow) earlier(t *tx) (first job.ID, err error) {
	if a.Job.IdempotencyKey == "" {
		return "", nil
	}
	var hash string
	err = t.row(`SELECT job, body_hash FROM idempotency WHERE principal = $1 AND key = $2`, []any{a.principal, a.Job.IdempotencyKey}, &first, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err != nil:
		return "", err
	case hash != a.BodyHash:
		return "", job.Errorf(job.CodeConflict, "idempotency_key", "%.64q was used for job %s with a different request", a.Job.IdempotencyKey, first).
			WithHint("use a new key for a new request")
	}
	return first, nil
}

func (a *admissionRow) insert(t *tx) error {
	for _, step := range []func(*tx) error{a.checkFrozen, a.enqueue, a.joinTree, a.reserve, a.insertJob, a.insertSpec, a.insertBudget, a.insertLabels, a.insertKey} {
		if err := step(t); err != nil {
			return err
		}
	}
	return t.event(a.Job.Owner, a.Job.Times.Queued, a.Job.ID, a.Job.Root, string(job.Queued), payload("profile", a.Job.Spec.Profile, "name", a.Job.Spec.Name, "clamped", a.clamps()))
}

// enqueue counts the job into the queue of its node and checks the bounds.
func (a *admissionRow) enqueue(t *tx) error {
	all, own, err := t.enqueue(a.Job.Node, a.Job.OwnerUID, a.bytes)
	switch {
	case err != nil:
		return err
	case all.jobs > a.MaxQueued:
		return job.Errorf(job.CodeQueueFull, "", "the queue is full: %d of at most %d jobs are waiting", all.jobs-1, a.MaxQueued).
			WithHint("wait until jobs have ended, or ask the operator to raise max_queued")
	case own.jobs > a.MaxQueuedPerUID:
		return job.Errorf(job.CodeQuota, "", "uid %d has %d of at most %d waiting jobs", a.Job.OwnerUID, own.jobs-1, a.MaxQueuedPerUID).
			WithHint("wait until your jobs have ended, or cancel some")
	case own.bytes > a.MaxQueuedBytesPerUID:
		return job.Errorf(job.CodeQuota, "", "this request is %d bytes; the waiting jobs of uid %d have %d of at most %d bytes", a.bytes, a.Job.OwnerUID, own.bytes-a.bytes, a.MaxQueuedBytesPerUID).
			WithHint("wait until your jobs have ended, cancel some, or give large inputs as files")
	}
	return nil
}

// expectOne turns "no row changed" into a conflict.
func expectOne(n int64, err error, format string, args ...any) error {
	if err == nil && n == 0 {
		return job.Errorf(job.CodeConflict, "", format, args...)
	}
	return err
}

func (a *admissionRow) insertJob(t *tx) error {
	j := a.Job
	n, err := t.exec(`INSERT INTO jobs(id, root, parent, depth, owner, owner_uid, owner_gid, owner_groups, state, attempt, node, epoch, name,
 priority, milli_cpus, memory, bytes, cancel_reason, cancel_kill, idem_key, queued, prepared, started, finished, settled, outcome)
 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9, $10, $11, $12, $13, $14, $15, $16, '', 0, $17, $18, 0, 0, 0, 0, '')
 ON CONFLICT (id) DO NOTHING`,
		j.ID, j.Root, j.Parent, j.Depth, j.Owner, j.OwnerUID, j.OwnerGID, a.groups, j.Attempt, j.Node, j.Epoch, j.Spec.Name,
		j.Spec.Priority, a.milliCPUs, a.memory, a.bytes, j.IdempotencyKey, j.Times.Queued)
	return expectOne(n, err, "job %s exists", j.ID)
}

func (a *admissionRow) insertSpec(t *tx) error {
	var stdin any // NULL
	if len(a.spec.stdin) > 0 {
		stdin = a.spec.stdin
	}
	_, err := t.exec(`INSERT INTO specs(job, spec, envelope, rest, stdin) VALUES ($1, $2, $3, $4, $5)`, a.Job.ID, a.spec.spec, string(a.Job.Envelope), a.spec.rest, stdin)
	return err
}

func (a *admissionRow) insertLabels(t *tx) error {
	for key, value := range a.Job.Spec.Labels {
		if _, err := t.exec(`INSERT INTO labels(key, value, job) VALUES ($1, $2, $3)`, key, value, a.Job.ID); err != nil {
			return err
		}
	}
	return nil
}

func (a *admissionRow) insertKey(t *tx) error {
	if a.Job.IdempotencyKey == "" {
		return nil
	}
	_, err := t.exec(`INSERT INTO idempotency(principal, key, body_hash, job) VALUES ($1, $2, $3, $4)`, a.principal, a.Job.IdempotencyKey, a.BodyHash, a.Job.ID)
	return err
}
