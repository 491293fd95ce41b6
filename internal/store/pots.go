package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

// pot is one row of pots.
type pot struct {
	bound                sql.NullInt64
	spent, granted, held int64
}

func (p pot) asBudget() budget.Pot {
	return budget.Pot{Limit: p.bound.Int64, Spent: p.spent, Granted: p.granted}
}

// pots are those of one job.
type pots map[budget.Dim]pot

// limited are the dimensions that have a limit.
func (p pots) limited() budget.Pots {
	out := budget.Pots{}
	for d, row := range p {
		if row.bound.Valid {
			out[d] = row.asBudget()
		}
	}
	return out
}

// reserved reports whether a grant of d is taken out of the parent's pot.
func reserved(d budget.Dim) bool { return d.Kind() == budget.Measured || d.Kind() == budget.Reported }

// inheritance returns how a job shares its budget, "" for a job that has none.
func (t *tx) inheritance(id job.ID) (inherit string, err error) {
	err = t.row(`SELECT inherit FROM budgets WHERE job = $1`, []any{id}, &inherit)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return inherit, err
}

// pots reads those of a job. Its tree was changed before in this transaction, so that nobody else changes them.
func (t *tx) pots(id job.ID) (pots, error) {
	out := pots{}
	err := t.rows(`SELECT dim, bound, spent, granted, held FROM pots WHERE job = $1`, []any{id}, func(rows *sql.Rows) error {
		var d budget.Dim
		var p pot
		err := rows.Scan(&d, &p.bound, &p.spent, &p.granted, &p.held)
		out[d] = p
		return err
	})
	return out, err
}

// setPot writes what a pot has come to. Its limit and hold never change.
func (t *tx) setPot(id job.ID, d budget.Dim, p pot) error {
	_, err := t.exec(`INSERT INTO pots(job, dim, bound, spent, granted, held) VALUES ($1, $2, NULL, $3, $4, 0)
 ON CONFLICT (job, dim) DO UPDATE SET spent = excluded.spent, granted = excluded.granted`, id, d, p.spent, p.granted)
	return err
}

const queryPots = `SELECT b.job, p.dim, p.bound, p.spent, p.granted FROM budgets b LEFT JOIN pots p ON p.job = b.job WHERE b.job = $1`

// Pots implements Trees.
func (s *SQLite) Pots(ctx context.Context, ids ...job.ID) (map[job.ID][]PotLine, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	out := map[job.ID][]PotLine{}
	err := s.read.snapshot(ctx, func(snap snapshot) error {
		for _, id := range ids {
			if err := snap.pots(ctx, id, out); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.explain("reading budgets", err)
	}
	return out, nil
}

// pots adds those of a job, where it has a budget.
func (s snapshot) pots(ctx context.Context, id job.ID, out map[job.ID][]PotLine) error {
	st := s.tx.StmtContext(ctx, s.r.stmts[queryPots])
	defer st.Close()
	rows, err := st.QueryContext(ctx, id)
	if err != nil {
		return err
	}
	lines, found := []PotLine{}, false
	err = each(rows, func(rows *sql.Rows) error {
		found = true
		var d sql.NullString
		var bound, spent, granted sql.NullInt64
		if err := rows.Scan(&id, &d, &bound, &spent, &granted); err != nil || !d.Valid {
			return err
		}
		l := PotLine{Dimension: d.String, Spent: spent.Int64, Granted: granted.Int64}
		if bound.Valid {
			l.Limit = &bound.Int64
		}
		lines = append(lines, l)
		return nil
	})
	if found {
		order := budget.Dims()
		slices.SortFunc(lines, func(a, b PotLine) int {
			return slices.Index(order, budget.Dim(a.Dimension)) - slices.Index(order, budget.Dim(b.Dimension))
		})
		out[id] = lines
	}
	return err
}
