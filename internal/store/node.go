package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"strconv"

	"sandboxd/internal/job"
)

const (
	querySlots     = `SELECT id, state, uid, container_id, job, attempt, dir, secret, evidence, error, tries, updated FROM slots ORDER BY id`
	queryJournaled = `SELECT count(*) FROM run_journal WHERE job = $1 AND attempt = $2 AND step = $3`
)

// Boot implements NodeState.
func (s *SQLite) Boot(ctx context.Context) (epoch int64, err error) {
	err = s.do(ctx, "boot", func(t *tx) error {
		last, err := t.meta("epoch")
		if err != nil {
			return err
		}
		epoch = 0
		if last != "" {
			if epoch, err = strconv.ParseInt(last, 10, 64); err != nil {
				return err
			}
		}
		epoch++
		return t.setMeta("epoch", strconv.FormatInt(epoch, 10))
	})
	if err != nil {
		return 0, err
	}
	return epoch, nil
}

// Instance implements NodeState.
func (s *SQLite) Instance(ctx context.Context) (id string, err error) {
	err = s.do(ctx, "instance", func(t *tx) error {
		if id, err = t.meta("instance"); err != nil || id != "" {
			return err
		}
		var b [16]byte
		if _, err := rand.Read(b[:]); err != nil {
			return err
		}
		id = hex.EncodeToString(b[:])
		return t.setMeta("instance", id)
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// meta returns "" for a key that was never set.
func (t *tx) meta(key string) (value string, err error) {
	err = t.row(`SELECT value FROM node_meta WHERE key = $1`, []any{key}, &value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

func (t *tx) setMeta(key, value string) error {
	_, err := t.exec(`INSERT INTO node_meta(key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}

// PutSlot implements NodeState.
func (s *SQLite) PutSlot(ctx context.Context, slot Slot) error {
	if slot.ID == "" || slot.State == "" {
		return errors.New("store: put slot: id or state is missing")
	}
	return s.do(ctx, "put slot", func(t *tx) error {
		_, err := t.exec(`INSERT INTO slots(id, state, uid, container_id, job, attempt, dir, secret, evidence, error, tries, updated)
 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
 ON CONFLICT (id) DO UPDATE SET state = excluded.state, uid = excluded.uid, container_id = excluded.container_id, job = excluded.job,
 attempt = excluded.attempt, dir = excluded.dir, secret = excluded.secret, evidence = excluded.evidence, error = excluded.error,
 tries = excluded.tries, updated = excluded.updated`,
			slot.ID, slot.State, slot.UID, slot.ContainerID, slot.Job, slot.Attempt, slot.Dir, slot.Key, slot.Evidence, slot.Error, slot.Tries, slot.UpdatedMS)
		return err
	})
}

// DeleteSlot implements NodeState.
func (s *SQLite) DeleteSlot(ctx context.Context, id string) error {
	return s.do(ctx, "delete slot", func(t *tx) error {
		_, err := t.exec(`DELETE FROM slots WHERE id = $1`, id)
		return err
	})
}

// Slots implements NodeState.
func (s *SQLite) Slots(ctx context.Context) ([]Slot, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	var out []Slot
	err := s.read.rows(ctx, querySlots, nil, func(rows *sql.Rows) error {
		var x Slot
		err := rows.Scan(&x.ID, &x.State, &x.UID, &x.ContainerID, &x.Job, &x.Attempt, &x.Dir, &x.Key, &x.Evidence, &x.Error, &x.Tries, &x.UpdatedMS)
		out = append(out, x)
		return err
	})
	if err != nil {
		return nil, s.explain("reading slots", err)
	}
	return out, nil
}

// Journal implements NodeState.
func (s *SQLite) Journal(ctx context.Context, id job.ID, attempt int, step string, nowMS int64) error {
	return s.do(ctx, "journal", func(t *tx) error {
		_, err := t.exec(`INSERT INTO run_journal(job, attempt, step, time) VALUES ($1, $2, $3, $4) ON CONFLICT (job, attempt, step) DO NOTHING`, id, attempt, step, nowMS)
		return err
	})
}

// Journaled implements NodeState.
func (s *SQLite) Journaled(ctx context.Context, id job.ID, attempt int, step string) (bool, error) {
	if err := s.ready(); err != nil {
		return false, err
	}
	var n int
	err := s.read.row(ctx, queryJournaled, []any{id, attempt, step}, &n)
	return n > 0, s.explain("reading the journal", err)
}
