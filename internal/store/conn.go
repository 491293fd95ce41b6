package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"modernc.org/sqlite"
)

// conn is the one writing connection with its prepared statements. Only the goroutine of the writer uses it.
type conn struct {
	path  string
	db    *sql.DB
	raw   *sql.Conn
	stmts map[string]*sql.Stmt // by text; all texts are constants
}

// dsn opens an existing file only. Statements cannot damage the file (defensive) and "x" is never a string (dqs).
func dsn(path string, pragmas ...string) string {
	q := url.Values{"mode": {"rw"}, "_defensive": {"1"}, "_dqs": {"0"}, "_error_rc": {"1"}}
	q["_pragma"] = append([]string{"busy_timeout(5000)", "trusted_schema(0)", "temp_store(MEMORY)"}, pragmas...)
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

func openDB(dsn string, conns int) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("opening the state database: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// processSettings are switches of the driver that hold for the whole process: locks that survive a stray close of
// the file elsewhere in the process, and fdatasync, which is as durable as fsync and cheaper.
func processSettings() error {
	if _, err := sqlite.OFDLocking(true); err != nil && !errors.Is(err, sqlite.ErrOFDLockingUnavailable) {
		return fmt.Errorf("choosing the locks of the state database: %w", err)
	}
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return fmt.Errorf("choosing how the state database syncs: %w", err)
	}
	return nil
}

// openWriter opens, checks and migrates the database. The log is moved into the database by the writer alone
// (wal_autocheckpoint 0), because SQLite's automatic checkpoint swallows a failed fsync. rest says that a part of the file
// is still to be checked.
func openWriter(ctx context.Context, path string, whole int64) (_ *conn, rest bool, err error) {
	if err := processSettings(); err != nil {
		return nil, false, err
	}
	db, err := openDB(dsn(path, "foreign_keys(1)", "synchronous(FULL)", "wal_autocheckpoint(0)", "journal_size_limit(16777216)", "cache_size(-16384)"), 1)
	if err != nil {
		return nil, false, err
	}
	c := &conn{path: path, db: db, stmts: map[string]*sql.Stmt{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.raw, err = db.Conn(ctx); err != nil {
		return nil, false, c.unreadable(err)
	}
	version, err := checkSchema(ctx, c)
	if err != nil {
		return nil, false, err
	}
	if rest, err = checkBeforeUse(ctx, c, version, whole); err != nil {
		return nil, false, err
	}
	var mode string
	if err := c.raw.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return nil, false, c.unreadable(err)
	}
	if mode != "wal" {
		return nil, false, fmt.Errorf("the state database %s cannot use a write-ahead log (journal mode %q): its file system lacks shared memory; name a directory on a local disk", path, mode)
	}
	return c, rest, migrate(ctx, c, version)
}

func (c *conn) unreadable(err error) error {
	if f := faultOf(err); f == fatal {
		return c.damaged(err.Error())
	}
	return fmt.Errorf("reading the state database %s: %w", c.path, err)
}

func (c *conn) damaged(why string) error {
	return fmt.Errorf("the state database %s is damaged or unreadable (%s); check the disk, then restore the directory from a backup or move it away to start empty", c.path, why)
}

// stmt prepares a text once.
func (c *conn) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	if st, ok := c.stmts[text]; ok {
		return st, nil
	}
	st, err := c.raw.PrepareContext(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("preparing %.40q: %w", text, err)
	}
	c.stmts[text] = st
	return st, nil
}

func (c *conn) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	st, err := c.stmt(ctx, text)
	if err != nil {
		return nil, err
	}
	return st.ExecContext(ctx, args...)
}

// checkpoint moves the log into the database file; mode is PASSIVE, TRUNCATE, or NOOP to look only. An error means the
// disk failed or is full, never that a reader was in the way.
func (c *conn) checkpoint(mode string) error {
	_, err := c.logFrames(mode)
	return err
}

// logFrames runs a checkpoint and returns the pages in the log that the database file lacks.
func (c *conn) logFrames(mode string) (int64, error) {
	var busy, log, moved int64
	st, err := c.stmt(context.Background(), "PRAGMA wal_checkpoint("+mode+")")
	if err != nil {
		return 0, err
	}
	if err := st.QueryRowContext(context.Background()).Scan(&busy, &log, &moved); err != nil {
		return 0, fmt.Errorf("checkpoint: %w", err)
	}
	return log - moved, nil
}

func (c *conn) close() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	if c.raw != nil {
		errs = append(errs, c.raw.Close())
	}
	return errors.Join(append(errs, c.db.Close())...)
}
