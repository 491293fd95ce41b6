package store

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed schema/0001.sql
var schema1 string

//go:embed schema/0002.sql
var schema2 string

//go:embed schema/0003.sql
var schema3 string

// migrations bring a database from version i to i+1. A released one is never edited.
var migrations = []string{schema1, schema2, schema3}

// applicationID marks the file as ours ("sbxd"), so that a foreign database is recognised.
const applicationID = 0x73627864

// checkSchema refuses a file that is not ours or was written by a newer daemon, before anything in it is changed.
func checkSchema(ctx context.Context, c *conn) (version int, err error) {
	var app, tables int64
	for pragma, into := range map[string]any{"PRAGMA application_id": &app, "PRAGMA user_version": &version, "SELECT count(*) FROM sqlite_master": &tables} {
		if err := c.raw.QueryRowContext(ctx, pragma).Scan(into); err != nil {
			return 0, c.unreadable(err)
		}
	}
	switch {
	case app != applicationID && (app != 0 || version != 0 || tables != 0):
		return 0, fmt.Errorf("%s is a database of another program (application id %#x); name another state directory", c.path, app)
	case version > len(migrations):
		return 0, fmt.Errorf("the state database %s has schema %d and this sandboxd knows schemas up to %d: it was written by a newer sandboxd; run that one, or name another state directory",
			c.path, version, len(migrations))
	}
	return version, nil
}

// migrate applies what is missing, all in one transaction.
func migrate(ctx context.Context, c *conn, from int) (err error) {
	if from == len(migrations) {
		return nil
	}
	if _, err := c.raw.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("migrating the state database %s: %w", c.path, err)
	}
	defer func() {
		if err != nil {
			_, _ = c.raw.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // the error that led here is the one to report
		}
	}()
	steps := append([]string{}, migrations[from:]...)
	steps = append(steps, fmt.Sprintf("PRAGMA application_id = %d", applicationID), fmt.Sprintf("PRAGMA user_version = %d", len(migrations)), "COMMIT")
	for _, sql := range steps {
		if _, err := c.raw.ExecContext(ctx, sql); err != nil {
			return fmt.Errorf("migrating the state database %s from schema %d to %d: %w", c.path, from, len(migrations), err)
		}
	}
	return nil
}
