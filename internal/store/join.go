package store

import (
	"database/sql"
	"errors"

	"sandboxd/internal/job"
)

// joinTree makes the tree of a root, or counts a child into the tree of its parent, and checks the caps.
func (a *admissionRow) joinTree(t *tx) error {
	j := a.Job
	if j.Parent == "" {
		n, err := t.exec(`INSERT INTO trees(root, owner, version, jobs_ever, jobs_live, bytes, ended, events) VALUES ($1, $2, 1, 1, 1, $3, 0, 0)
 ON CONFLICT (root) DO NOTHING`, j.ID, j.Owner, a.bytes)
		return expectOne(n, err, "job %s exists", j.ID)
	}
	var ever, live int
	err := t.row(`UPDATE trees SET version = version + 1, jobs_ever = jobs_ever + 1, jobs_live = jobs_live + 1, bytes = bytes + $4
 WHERE root = $1 AND owner = $2 AND EXISTS (SELECT 1 FROM jobs WHERE id = $3 AND root = $1 AND state <> 'done') RETURNING jobs_ever, jobs_live`,
		[]any{j.Root, j.Owner, j.Parent, a.bytes}, &ever, &live)
	switch caps := a.Caps; {
	case errors.Is(err, sql.ErrNoRows):
		return job.Errorf(job.CodeConflict, "", "its parent %s has ended", j.Parent)
	case err != nil:
		return err
	case caps == TreeCaps{}:
	case ever > caps.MaxJobs:
		return job.Errorf(job.CodeTreeLimit, "max_tree_jobs", "the tree has had %d of at most %d jobs, the root included", ever-1, caps.MaxJobs).
			WithHint("end this tree and submit a new one, or ask the operator to raise max_tree_jobs of the root's profile")
	case live > caps.MaxLive:
		return job.Errorf(job.CodeTreeLimit, "max_tree_live", "the tree has %d of at most %d live jobs, the root included", live-1, caps.MaxLive).
			WithHint("wait for a child to end ('sbx wait'), then try again")
	}
	return t.checkParent(j.Parent)
}

// queryEnding finds a job, the one given or above it, that may have no more jobs below.
const queryEnding = `WITH RECURSIVE line(id, parent, state, cancel_reason) AS (
 SELECT id, parent, state, cancel_reason FROM jobs WHERE id = $1
 UNION ALL SELECT j.id, j.parent, j.state, j.cancel_reason FROM line l JOIN jobs j ON j.id = l.parent)
 SELECT id, state FROM line WHERE state NOT IN ('running', 'waiting') OR cancel_reason <> '' LIMIT 1`

// checkParent refuses a child of a job that does not run, and below one that is ending or whose end was asked for, at any
// distance: who ends a subtree must come to an end of it.
func (t *tx) checkParent(parent job.ID) error {
	var id job.ID
	var state job.State
	err := t.row(queryEnding, []any{parent}, &id, &state)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	case state == job.Queued || state == job.Starting:
		return job.Errorf(job.CodeConflict, "", "its parent %s has not started", id)
	}
	return job.Errorf(job.CodeConflict, "", "job %s, which is above it, is ending", id)
}
