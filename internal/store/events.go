package store

import (
	"context"
	"database/sql"
	"errors"

	"sandboxd/internal/job"
)

// allOwners is the counter of all events.
const allOwners = "*"

// MaxPage bounds one answer of Jobs and Events.
const MaxPage = 1000

const (
	queryEvents    = `SELECT seq, owner, time, job, root, type, payload FROM events WHERE owner = $1 AND seq > $2 ORDER BY seq LIMIT $3`
	queryAllEvents = `SELECT total, owner, time, job, root, type, payload FROM events WHERE total > $1 ORDER BY total LIMIT $2`
	// queryJobEvents has the job as $1.
	queryJobEvents = withMine + `SELECT tree_seq, owner, time, job, root, type, payload FROM events
 WHERE root = (SELECT j.root FROM jobs j WHERE j.id = $1) AND tree_seq > $2 AND job IN (SELECT id FROM mine) ORDER BY tree_seq LIMIT $3`
)

// event appends one event of an owner within the transaction of what it tells of.
func (t *tx) event(owner string, timeMS int64, id, root any, kind string, payload map[string]string) error {
	var own, total int64
	err := t.rows(`INSERT INTO event_counters(owner, seq) VALUES ($1, 1), ($2, 1)
 ON CONFLICT (owner) DO UPDATE SET seq = event_counters.seq + 1 RETURNING owner, seq`, []any{allOwners, owner}, func(rows *sql.Rows) error {
		var who string
		var seq int64
		if err := rows.Scan(&who, &seq); err != nil {
			return err
		}
		if who == allOwners {
			total = seq
		} else {
			own = seq
		}
		return nil
	})
	if err != nil {
		return err
	}
	var inTree int64
	if err := t.row(`UPDATE trees SET events = events + 1 WHERE root = $1 RETURNING events`, []any{root}, &inTree); err != nil {
		return err
	}
	var text string
	if len(payload) > 0 {
		if text, err = encode(payload); err != nil {
			return err
		}
	}
	_, err = t.exec(`INSERT INTO events(total, owner, seq, tree_seq, time, job, root, type, payload) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		total, owner, own, inTree, timeMS, id, root, kind, text)
	t.announces = true
	return err
}

// Tell implements Trees.
func (s *SQLite) Tell(ctx context.Context, id job.ID, kind string, payload map[string]string, nowMS int64) error {
	if kind == "" || nowMS <= 0 {
		return errors.New("store: tell: the kind or the time is missing")
	}
	return s.do(ctx, "tell", func(t *tx) error {
		st, err := t.standing(id)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(string(id))
		}
		if err != nil {
			return err
		}
		return t.tell(st, nowMS, kind, payload)
	})
}

// payload makes a map of key, value, key, value…; empty values are left out.
func payload(kv ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i+1] != "" {
			m[kv[i]] = kv[i+1]
		}
	}
	return m
}

// Events implements Reader.
func (s *SQLite) Events(ctx context.Context, v Viewer, after int64, limit int) ([]Event, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	text, args := queryEvents, []any{v.Principal, after, pageSize(limit)}
	switch {
	case v.Job != "":
		text, args[0] = queryJobEvents, v.Job
	case v.All:
		text, args = queryAllEvents, args[1:]
	}
	var out []Event
	err := s.read.rows(ctx, text, args, func(rows *sql.Rows) error {
		var e Event
		var text string
		if err := rows.Scan(&e.Seq, &e.Owner, &e.TimeMS, &e.Job, &e.Root, &e.Type, &text); err != nil {
			return err
		}
		out = append(out, e)
		return decode("payload", text, &out[len(out)-1].Payload)
	})
	if err != nil {
		return nil, s.explain("reading events", err)
	}
	return out, nil
}

// pageSize applies the default and the bound of a page.
func pageSize(limit int) int {
	if limit <= 0 {
		return 100
	}
	return min(limit, MaxPage)
}
