package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
)

// The partial index jobs_open covers this query, so its cost is that of the open jobs alone.
const queryQueued = `SELECT id, root, owner_uid, priority, milli_cpus, memory, attempt FROM jobs WHERE state <> 'done' AND state = 'queued' AND node = $1`

// anyUID is the row of a node's total in queues.
const anyUID = -1

// waiting is what waits in a queue.
type waiting struct {
	jobs  int
	bytes int64
}

// enqueue counts one more queued job of a uid on a node and returns what the node and the uid have then.
func (t *tx) enqueue(node string, uid uint32, bytes int64) (all, own waiting, err error) {
	err = t.rows(`INSERT INTO queues(node, owner_uid, queued, bytes) VALUES ($1, $2, 1, $4), ($1, $3, 1, $4)
 ON CONFLICT (node, owner_uid) DO UPDATE SET queued = queues.queued + 1, bytes = queues.bytes + excluded.bytes
 RETURNING owner_uid, queued, bytes`, []any{node, anyUID, uid, bytes}, func(rows *sql.Rows) error {
		var who int64
		var w waiting
		if err := rows.Scan(&who, &w.jobs, &w.bytes); err != nil {
			return err
		}
		if who == anyUID {
			all = w
		} else {
			own = w
		}
		return nil
	})
	return all, own, err
}

// dequeue counts one queued job less.
func (t *tx) dequeue(s standing) error {
	_, err := t.exec(`UPDATE queues SET queued = queued - 1, bytes = bytes - $1 WHERE node = $2 AND owner_uid IN ($3, $4)`, s.bytes, s.node, anyUID, s.uid)
	return err
}

// Queued implements Reader.
func (s *SQLite) Queued(ctx context.Context) ([]QueueItem, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	var out []QueueItem
	err := s.read.rows(ctx, queryQueued, []any{s.node}, func(rows *sql.Rows) error {
		var q QueueItem
		err := rows.Scan(&q.ID, &q.Root, &q.OwnerUID, &q.Priority, &q.MilliCPUs, &q.Memory, &q.Attempt)
		out = append(out, q)
		return err
	})
	if err != nil {
		return nil, s.explain("reading the queue", err)
	}
	slices.SortFunc(out, func(a, b QueueItem) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}
