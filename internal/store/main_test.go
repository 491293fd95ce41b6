package store_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// childEnv names what the test binary does when a test starts it as another process; childDir is its state directory.
const (
	childEnv = "SANDBOXD_STORE_CHILD"
	childDir = "SANDBOXD_STORE_DIR"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := children[role](context.Background(), os.Getenv(childDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func options(dir string) store.Options {
	return store.Options{Dir: dir, Node: ledgertest.Node, Log: zerolog.Nop()}
}

// open starts a store on a directory and closes it at the end of the test.
func open(t testing.TB, dir string) *store.SQLite {
	t.Helper()
	s := store.New(options(dir))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestSQLiteIsALedger(t *testing.T) {
	ledgertest.RunLedger(t, func(t *testing.T) store.Ledger {
		dir := t.TempDir()
		t.Cleanup(func() { audit(t, dir) }) // runs after the store was closed
		return open(t, dir)
	})
}

func TestSQLiteIsANodeState(t *testing.T) {
	ledgertest.RunNodeState(t, func(t *testing.T) store.NodeState { return open(t, t.TempDir()) })
}
