package store_test

import (
	"context"
	"os"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

type reopenable struct {
	dir string
	s   *store.SQLite
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

func TestSQLiteFollowsTheModel(t *testing.T) {
	t.Parallel()
	ledgertest.RunModel(t, func(rt *rapid.T) ledgertest.Reopenable {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		r := &reopenable{dir: dir}
		if err := r.Reopen(); err != nil {
			rt.Fatal(err)
		}
		rt.Cleanup(func() {
			if err := r.s.Close(); err != nil {
				t.Error(err)
			}
			audit(t, dir)
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
		return r
	})
}
