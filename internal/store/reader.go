package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// readQueries are the constant queries of the reading side.
var readQueries = []string{
	queryJob, queryRecord, queryQueued, queryEvents, queryAllEvents, queryJobEvents, querySlots, queryJournaled,
	queryOldTrees, queryKept, queryOldestTrees, queryTreeJobs, queryOwners, queryTree, queryPots, queryFreezes,
}

// reader is a pool of connections that cannot write.
type reader struct {
	db *sql.DB
	// stmts are the constant queries, by text. All are prepared at the start: preparing one later would wait for a
	// connection, perhaps one whose holder waits for that query.
	stmts map[string]*sql.Stmt
}

func openReader(ctx context.Context, path string, conns int) (_ *reader, err error) {
	db, err := openDB(dsn(path, "query_only(1)"), conns)
	if err != nil {
		return nil, err
	}
	r := &reader{db: db, stmts: map[string]*sql.Stmt{}}
	for _, text := range readQueries {
		if r.stmts[text], err = db.PrepareContext(ctx, text); err != nil {
			delete(r.stmts, text)
			return nil, errors.Join(fmt.Errorf("opening the state database for reading: preparing %.60q: %w", text, err), r.close())
		}
	}
	return r, nil
}

// row scans the one row of a query of readQueries, or returns sql.ErrNoRows.
func (r *reader) row(ctx context.Context, text string, args []any, into ...any) error {
	return r.stmts[text].QueryRowContext(ctx, args...).Scan(into...)
}

// rows calls scan for each row of a query of readQueries.
func (r *reader) rows(ctx context.Context, text string, args []any, scan func(*sql.Rows) error) error {
	rows, err := r.stmts[text].QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return each(rows, scan)
}

// snapshot is a read transaction: all its reads see one state of the database.
type snapshot struct {
	tx *sql.Tx
	r  *reader
}

func (r *reader) snapshot(ctx context.Context, fn func(snapshot) error) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	return fn(snapshot{tx, r})
}

// ids runs a query of any text that returns job ids.
func (s snapshot) ids(ctx context.Context, q query) ([]string, error) {
	rows, err := s.tx.QueryContext(ctx, q.text(), q.args...)
	if err != nil {
		return nil, err
	}
	var out []string
	err = each(rows, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		out = append(out, id)
		return err
	})
	return out, err
}

func (r *reader) close() error {
	var errs []error
	for _, st := range r.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, r.db.Close())...)
}
