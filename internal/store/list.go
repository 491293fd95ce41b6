package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"sandboxd/internal/job"
)

// maxPageBytes bounds the memory of one listing: a page ends early rather than hold more of what jobs asked and
// returned.
const maxPageBytes = 8 << 20

// withMine makes the table mine of a job ($1) and its descendants.
const withMine = `WITH RECURSIVE mine(id) AS (SELECT id FROM jobs WHERE id = $1
 UNION ALL SELECT c.id FROM mine m JOIN jobs c ON c.parent = m.id AND c.parent <> '') `

// query is a text and its arguments, built piece by piece.
type query struct {
	with  string // before the SELECT
	from  string
	id    string // the column to page by
	order string // "" for id
	where []string
	args  []any
	limit int // 0 for none
}

// arg adds a value and returns its placeholder.
func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

func (q *query) and(cond string) { q.where = append(q.where, cond) }

func (q query) text() string {
	where := ""
	if len(q.where) > 0 {
		where = " WHERE " + strings.Join(q.where, " AND ")
	}
	text := fmt.Sprintf("%sSELECT j.id FROM %s%s ORDER BY %s DESC", q.with, q.from, where, cmp.Or(q.order, q.id))
	if q.limit > 0 {
		text += fmt.Sprintf(" LIMIT %d", q.limit)
	}
	return text
}

// listQuery finds the ids of a page, newest first. Exactly one condition may use an index, the most selective one, so
// that the cost follows the answer and not the number of jobs kept: the others are written as expressions. A job walks
// its descendants, who are few.
func listQuery(v Viewer, f Filter) query {
	q := query{from: "jobs j", id: "j.id", limit: pageSize(f.Limit)}
	if v.Job != "" {
		q.with, q.from = withMine, "mine m CROSS JOIN jobs j"
		q.and("m.id = j.id")
		q.arg(v.Job)
	}
	indexed := q.byLabels(f.Labels) || v.Job != ""
	equal := func(column, value, index string) {
		switch {
		case value == "":
		case indexed:
			q.and(fmt.Sprintf("(%s || '') = %s", column, q.arg(value)))
		default:
			q.and(fmt.Sprintf("%s = %s%s", column, q.arg(value), index))
			indexed = true
		}
	}
	equal("j.parent", string(f.Parent), " AND j.parent <> ''")
	equal("j.root", string(f.Root), "")
	equal("j.name", f.Name, " AND j.name <> ''")
	if !v.All && v.Job == "" {
		equal("j.owner", v.Principal, "")
		if v.Principal == "" {
			q.and("1 = 0")
		}
	}
	if open := q.byState(f.States); open && !indexed {
		q.order = "(j.id || '')" // sorts the few open ones rather than walk past all that are done
	}
	if f.Before != "" {
		q.and(q.id + " < " + q.arg(f.Before))
	}
	return q
}

// byLabels walks the index of the first label; the other labels are probes.
func (q *query) byLabels(labels map[string]string) bool {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if q.from == "jobs j" {
			q.from, q.id = "labels l CROSS JOIN jobs j", "l.job"
			q.and(fmt.Sprintf("l.key = %s AND l.value = %s AND j.id = l.job", q.arg(key), q.arg(labels[key])))
			continue
		}
		q.and(fmt.Sprintf("EXISTS (SELECT 1 FROM labels m WHERE m.key = %s AND m.value = %s AND m.job = j.id)", q.arg(key), q.arg(labels[key])))
	}
	return len(labels) > 0
}

// byState says "not done" in the words of the partial index where that is implied, and reports so.
func (q *query) byState(states []job.State) (open bool) {
	if len(states) == 0 {
		return false
	}
	marks := make([]string, len(states))
	for i, s := range states {
		marks[i] = q.arg(s)
	}
	if open = !slices.Contains(states, job.Done); open {
		q.and("j.state <> 'done'")
	}
	q.and("j.state IN (" + strings.Join(marks, ", ") + ")")
	return open
}

// Jobs implements Reader.
func (s *SQLite) Jobs(ctx context.Context, v Viewer, f Filter) ([]job.Job, error) {
	return s.page(ctx, "listing jobs", listQuery(v, f), maxPageBytes)
}

// Unfinished implements Reader. It is bounded by what a host can run at once; a page that left some out would have
// recovery forget them.
func (s *SQLite) Unfinished(ctx context.Context, node string) ([]job.Job, error) {
	q := query{from: "jobs j", id: "j.id", order: "(j.id || '')"}
	q.byState([]job.State{job.Starting, job.Running, job.Waiting, job.Finishing})
	q.and("j.node = " + q.arg(node))
	return s.page(ctx, "listing unfinished jobs", q, math.MaxInt)
}

// page reads the records of a query's ids in one snapshot, in its order.
func (s *SQLite) page(ctx context.Context, step string, q query, maxBytes int) (out []job.Job, err error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	err = s.read.snapshot(ctx, func(snap snapshot) error {
		ids, err := snap.ids(ctx, q)
		if err != nil {
			return err
		}
		out, err = snap.records(ctx, ids, maxBytes)
		return err
	})
	return out, s.explain(step, err)
}

// records reads the records of ids; it stops before the one that would exceed maxBytes, but not before the first.
func (s snapshot) records(ctx context.Context, ids []string, maxBytes int) ([]job.Job, error) {
	st := s.tx.StmtContext(ctx, s.r.stmts[queryRecord])
	defer st.Close()
	out := make([]job.Job, 0, len(ids))
	for _, id := range ids {
		j, bytes, err := scanRecord(st.QueryRowContext(ctx, id))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if maxBytes -= bytes; maxBytes < 0 && len(out) > 0 {
			break
		}
		out = append(out, j)
	}
	return out, nil
}

const (
	queryOpenCounts = `SELECT state, count(*) FROM jobs WHERE state <> 'done' GROUP BY state`
	queryTotal      = `SELECT count(*) FROM jobs`
)

// Counts implements Reader.
func (s *SQLite) Counts(ctx context.Context) (Counts, error) {
	if err := s.ready(); err != nil {
		return Counts{}, err
	}
	c := Counts{ByState: map[job.State]int{}}
	err := s.read.snapshot(ctx, func(snap snapshot) error {
		if err := snap.tx.QueryRowContext(ctx, queryTotal).Scan(&c.Total); err != nil {
			return err
		}
		rows, err := snap.tx.QueryContext(ctx, queryOpenCounts)
		if err != nil {
			return err
		}
		open := 0
		if err := each(rows, func(rows *sql.Rows) error {
			var state job.State
			var n int
			err := rows.Scan(&state, &n)
			c.ByState[state], open = n, open+n
			return err
		}); err != nil {
			return err
		}
		c.ByState[job.Done] = c.Total - open
		return nil
	})
	return c, s.explain("counting jobs", err)
}
