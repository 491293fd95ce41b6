package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"sandboxd/internal/job"
)

// The scopes of a freeze.
const (
	FreezeAll     = "all"
	FreezeProfile = "profile"
	FreezeTree    = "tree"
)

// Freeze is what an operator stopped. It survives restarts, until Thaw.
type Freeze struct {
	Scope string // FreezeAll, FreezeProfile or FreezeTree
	Name  string // of the profile, the root of the tree; "" for all
	By    string // principal
	NowMS int64  // since when
}

func (f Freeze) String() string {
	if f.Scope == FreezeAll {
		return "everything"
	}
	return f.Scope + " " + f.Name
}

func (f Freeze) check() error {
	switch f.Scope {
	case FreezeAll:
		if f.Name != "" {
			return errors.New("a freeze of all has no name")
		}
	case FreezeProfile, FreezeTree:
		if f.Name == "" {
			return fmt.Errorf("a freeze of a %s names it", f.Scope)
		}
	default:
		return fmt.Errorf("the scope is %q, %q or %q, not %.40q", FreezeAll, FreezeProfile, FreezeTree, f.Scope)
	}
	return nil
}

// Freeze implements Trees.
func (s *SQLite) Freeze(ctx context.Context, f Freeze) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("store: freeze: %w", err)
	}
	if f.By == "" || f.NowMS <= 0 {
		return errors.New("store: freeze: who froze, or the time, is missing")
	}
	return s.do(ctx, "freeze", func(t *tx) error {
		if f.Scope == FreezeTree {
			var root job.ID
			err := t.row(`SELECT root FROM trees WHERE root = $1`, []any{f.Name}, &root)
			if errors.Is(err, sql.ErrNoRows) {
				return notFound(f.Name)
			}
			if err != nil {
				return err
			}
		}
		_, err := t.exec(`INSERT INTO freezes(scope, name, frozen_by, since) VALUES ($1, $2, $3, $4) ON CONFLICT (scope, name) DO NOTHING`,
			f.Scope, f.Name, f.By, f.NowMS)
		return err
	})
}

// Thaw implements Trees.
func (s *SQLite) Thaw(ctx context.Context, f Freeze) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("store: thaw: %w", err)
	}
	return s.do(ctx, "thaw", func(t *tx) error { return t.thaw(f.Scope, f.Name) })
}

func (t *tx) thaw(scope, name string) error {
	_, err := t.exec(`DELETE FROM freezes WHERE scope = $1 AND name = $2`, scope, name)
	return err
}

const queryFreezes = `SELECT scope, name, frozen_by, since FROM freezes`

// Freezes implements Trees, in order of scope and name.
func (s *SQLite) Freezes(ctx context.Context) (out []Freeze, err error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	err = s.read.rows(ctx, queryFreezes, nil, func(rows *sql.Rows) error {
		var f Freeze
		err := rows.Scan(&f.Scope, &f.Name, &f.By, &f.NowMS)
		out = append(out, f)
		return err
	})
	if err != nil {
		return nil, s.explain("reading freezes", err)
	}
	slices.SortFunc(out, func(a, b Freeze) int { return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name)) })
	return out, nil
}

// checkFrozen refuses a job of a scope that an operator stopped.
func (a *admissionRow) checkFrozen(t *tx) error {
	var f Freeze
	err := t.row(`SELECT scope, name FROM freezes WHERE scope = 'all' OR (scope = 'profile' AND name = $1) OR (scope = 'tree' AND name = $2)
 ORDER BY scope LIMIT 1`, []any{a.Job.Spec.Profile, a.Job.Root}, &f.Scope, &f.Name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return job.Errorf(job.CodeFrozen, "", "%s is frozen: an operator stopped further jobs", f).WithHint("try again when the operator has let it thaw ('sbx thaw')")
}
