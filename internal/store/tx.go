package store

import (
	"context"
	"database/sql"
)

// tx is what a decision sees of its transaction.
type tx struct {
	conn      *conn
	announces bool // wrote an event
}

// exec returns the number of rows changed.
func (t *tx) exec(text string, args ...any) (int64, error) {
	res, err := t.conn.exec(context.Background(), text, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row scans the one row of a query, or returns sql.ErrNoRows.
func (t *tx) row(text string, args []any, into ...any) error {
	st, err := t.conn.stmt(context.Background(), text)
	if err != nil {
		return err
	}
	return st.QueryRowContext(context.Background(), args...).Scan(into...)
}

// rows calls scan for each row.
func (t *tx) rows(text string, args []any, scan func(*sql.Rows) error) error {
	st, err := t.conn.stmt(context.Background(), text)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	return each(rows, scan)
}

func each(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
