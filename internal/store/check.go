package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
)

// bootTables are those that recovery decides by. The others (specs, results, events) hold most of the bytes.
var bootTables = []string{"node_meta", "slots", "run_journal", "queues", "trees", "jobs", "freezes"}

// querier is a connection or a pool.
type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// checkBeforeUse runs SQLite's quick_check, on the whole of a file of up to whole bytes. Of a larger one, with a schema
// we know, it checks the tables of bootTables; then rest is true and the whole is checked while the daemon works
// (see SQLite.checkRest), so that a start does not wait until every byte that is kept has been read.
func checkBeforeUse(ctx context.Context, c *conn, version int, whole int64) (rest bool, err error) {
	fi, err := os.Stat(c.path)
	if err != nil {
		return false, fmt.Errorf("looking at the state database: %w", err)
	}
	if fi.Size() <= whole || version != len(migrations) {
		return false, c.verdict(quickCheck(ctx, c.raw, "PRAGMA quick_check(3)"))
	}
	for _, table := range bootTables {
		if err := c.verdict(quickCheck(ctx, c.raw, "PRAGMA quick_check("+table+")")); err != nil {
			return false, err
		}
	}
	return true, nil
}

// verdict is the refusal of a damaged file.
func (c *conn) verdict(found string, err error) error {
	switch {
	case err != nil:
		return c.unreadable(err)
	case found != "":
		return c.damaged(found)
	}
	return nil
}

// quickCheck returns what is wrong, "" for nothing.
func quickCheck(ctx context.Context, q querier, pragma string) (found string, err error) {
	rows, err := q.QueryContext(ctx, pragma)
	if err != nil {
		return "", err
	}
	var lines []string
	err = each(rows, func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		lines = append(lines, strings.Join(strings.Fields(line), " "))
		return err
	})
	if len(lines) == 1 && lines[0] == "ok" {
		lines = nil
	}
	return strings.Join(lines[:min(3, len(lines))], "; "), err
}

// checkRest checks the whole file while the daemon works. Damage is fatal; Close cancels the check.
func (s *SQLite) checkRest(ctx context.Context) {
	defer close(s.checked)
	found, err := quickCheck(ctx, s.read.db, "PRAGMA quick_check(3)")
	switch {
	case ctx.Err() != nil:
	case faultOf(err) == fatal:
		s.fail(s.write.conn.unreadable(err))
	case err != nil:
		s.log.Warn().Err(err).Msg("the state database could not be checked whole")
	case found != "":
		s.fail(s.write.conn.damaged(found))
	}
}
