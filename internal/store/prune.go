package store

import (
	"context"
	"database/sql"
	"errors"

	"sandboxd/internal/job"
)

// PrunePolicy says what of the ended jobs is kept. Zero never means unlimited: all fields but the first must be set.
type PrunePolicy struct {
	OlderThanMS       int64 // trees that ended before this moment (Unix milliseconds) go, and events from before it
	MaxPerOwner       int   // job records kept for one owner; the oldest trees go first
	MaxBytesPerOwner  int64 // bytes of specs, streams and artifacts kept for one owner; the oldest trees go first
	MaxEventsPerOwner int   // events kept for one owner
	Limit             int   // jobs deleted by one call; default 1000
}

// Bounds of one transaction of pruning, so that others need not wait long.
const (
	pruneBatch  = 16  // trees
	pruneEvents = 500 // events
)

const (
	queryOldTrees    = `SELECT root, jobs_ever, bytes FROM trees WHERE ended > 0 AND ended < $1 ORDER BY ended LIMIT $2`
	queryKept        = `SELECT coalesce(sum(jobs_ever), 0), coalesce(sum(bytes), 0) FROM trees WHERE owner = $1 AND ended > 0`
	queryOldestTrees = `SELECT root, jobs_ever, bytes FROM trees WHERE owner = $1 AND ended > 0 ORDER BY ended LIMIT $2`
	queryTreeJobs    = `SELECT id FROM jobs WHERE root = $1`
	queryOwners      = `SELECT owner FROM event_counters WHERE owner <> '*'`
)

// Prune deletes ended trees past the policy, whole ones only: a parent keeps its children until it goes itself. It
// returns the jobs deleted, so that the caller can remove their files; a caller that crashes before it did finds those
// files without a record. Fewer than Limit means that nothing is left to prune.
func (s *SQLite) Prune(ctx context.Context, p PrunePolicy) ([]job.ID, error) {
	if p.MaxPerOwner <= 0 || p.MaxBytesPerOwner <= 0 || p.MaxEventsPerOwner <= 0 || p.OlderThanMS < 0 || p.Limit < 0 {
		return nil, errors.New("store: prune: a bound is missing; 0 is invalid and never means unlimited")
	}
	if err := s.ready(); err != nil {
		return nil, err
	}
	if p.Limit == 0 {
		p.Limit = 1000
	}
	owners, err := s.owners(ctx)
	if err != nil {
		return nil, err
	}
	roots, err := s.prunable(ctx, p, owners)
	if err != nil {
		return nil, err
	}
	var gone []job.ID
	for len(roots) > 0 {
		n := min(pruneBatch, len(roots))
		ids, err := s.pruneTrees(ctx, roots[:n])
		gone = append(gone, ids...)
		if err != nil {
			return gone, err
		}
		roots = roots[n:]
	}
	for _, owner := range owners {
		if err := s.pruneEvents(ctx, owner, p); err != nil {
			return gone, err
		}
	}
	return gone, nil
}

func (s *SQLite) owners(ctx context.Context) (owners []string, err error) {
	err = s.read.rows(ctx, queryOwners, nil, func(rows *sql.Rows) error {
		var o string
		err := rows.Scan(&o)
		owners = append(owners, o)
		return err
	})
	return owners, s.explain("listing owners", err)
}

// kept is the weight of an ended tree, or of all of an owner's.
type kept struct {
	root  job.ID
	jobs  int
	bytes int64
}

// prunable chooses the trees to delete, Limit jobs at most but for the last tree. An ended tree never changes again, so
// the choice holds until the deletion.
func (s *SQLite) prunable(ctx context.Context, p PrunePolicy, owners []string) (roots []job.ID, err error) {
	seen := map[job.ID]bool{}
	room := p.Limit
	choose := func(k kept) {
		if !seen[k.root] && room > 0 {
			seen[k.root] = true
			roots, room = append(roots, k.root), room-k.jobs
		}
	}
	old, err := s.trees(ctx, queryOldTrees, p.OlderThanMS, p.Limit)
	if err != nil {
		return nil, err
	}
	for _, k := range old {
		choose(k)
	}
	for _, owner := range owners {
		var all kept
		if err := s.read.row(ctx, queryKept, []any{owner}, &all.jobs, &all.bytes); err != nil {
			return nil, s.explain("weighing the records of an owner", err)
		}
		if all.jobs <= p.MaxPerOwner && all.bytes <= p.MaxBytesPerOwner {
			continue
		}
		oldest, err := s.trees(ctx, queryOldestTrees, owner, p.Limit)
		if err != nil {
			return nil, err
		}
		for _, k := range oldest {
			if all.jobs <= p.MaxPerOwner && all.bytes <= p.MaxBytesPerOwner {
				break
			}
			choose(k)
			all.jobs, all.bytes = all.jobs-k.jobs, all.bytes-k.bytes
		}
	}
	return roots, nil
}

func (s *SQLite) trees(ctx context.Context, text string, args ...any) (out []kept, err error) {
	err = s.read.rows(ctx, text, args, func(rows *sql.Rows) error {
		var k kept
		err := rows.Scan(&k.root, &k.jobs, &k.bytes)
		out = append(out, k)
		return err
	})
	return out, s.explain("choosing trees to prune", err)
}

// pruneTrees deletes the run journal first and the trees after it: the two are not of one transaction, and an ended job
// needs no journal.
func (s *SQLite) pruneTrees(ctx context.Context, roots []job.ID) (ids []job.ID, err error) {
	for _, root := range roots {
		err := s.read.rows(ctx, queryTreeJobs, []any{root}, func(rows *sql.Rows) error {
			var id job.ID
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
		if err != nil {
			return nil, s.explain("listing the jobs of a tree", err)
		}
	}
	err = s.do(ctx, "prune the journal", func(t *tx) error {
		for _, id := range ids {
			if _, err := t.exec(`DELETE FROM run_journal WHERE job = $1`, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = s.do(ctx, "prune", func(t *tx) error {
		ids = nil
		for _, root := range roots {
			if err := t.pruneTree(root, &ids); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

func (t *tx) pruneTree(root job.ID, ids *[]job.ID) error {
	var live int
	if err := t.row(`SELECT jobs_live FROM trees WHERE root = $1`, []any{root}, &live); err != nil || live != 0 {
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	err := t.rows(`DELETE FROM jobs WHERE root = $1 RETURNING id`, []any{root}, func(rows *sql.Rows) error {
		var id job.ID
		err := rows.Scan(&id)
		*ids = append(*ids, id)
		return err
	})
	if err != nil {
		return err
	}
	if err := t.thaw(FreezeTree, string(root)); err != nil {
		return err
	}
	_, err = t.exec(`DELETE FROM trees WHERE root = $1`, root)
	return err
}
