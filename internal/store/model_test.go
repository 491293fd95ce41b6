package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

type reopenable struct {
	base string // holds all directories it had
	dir  string
	s    *store.SQLite
}

func (r *reopenable) Ledger() store.Ledger { return r.s }

func (r *reopenable) Reopen() error {
	if r.s != nil {
		if err := r.s.Close(); err != nil {
			return err
		}
	}
	r.s = store.New(options(r.dir))
	return r.s.Open(context.Background())
}

// Crash opens a copy of the files that was taken before the close.
func (r *reopenable) Crash() error {
	next, err := os.MkdirTemp(r.base, "")
	if err != nil {
		return err
	}
	for _, name := range []string{"state.db", "state.db-wal"} { // in this order: what is moved from the log meanwhile stays in it
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(next, name), b, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	r.dir = next
	return r.Reopen()
}

func TestSQLiteFollowsTheModel(t *testing.T) {
	t.Parallel()
	ledgertest.RunModel(t, func(rt *rapid.T) ledgertest.Reopenable {
		base, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		r := &reopenable{base: base, dir: filepath.Join(base, "first")}
		if err := r.Reopen(); err != nil {
			rt.Fatal(err)
		}
		rt.Cleanup(func() {
			if err := r.s.Close(); err != nil {
				t.Error(err)
			}
			audit(t, r.dir)
			if err := os.RemoveAll(base); err != nil {
				t.Error(err)
			}
		})
		return r
	})
}
