package store_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// rank orders states by how far a job has come.
var rank = map[job.State]int{job.Queued: 1, job.Starting: 2, job.Running: 3, job.Done: 4}

func TestWhatWasAcknowledgedSurvivesKill(t *testing.T) {
	dir := t.TempDir()
	promised := map[job.ID]job.State{}
	for round := range 20 {
		runUntilKilled(t, dir, promised)
		s := store.New(options(dir))
		if err := s.Open(t.Context()); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for id, least := range promised {
			j, err := s.Job(t.Context(), id)
			if err != nil || rank[j.State] < rank[least] {
				t.Errorf("round %d: job %s was promised %s and is %q: %v", round, id, least, j.State, err)
			}
			if j.State == job.Done {
				delete(promised, id) // it cannot come further; later rounds check the rest
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		audit(t, dir)
	}
}

// runUntilKilled kills a child that writes, at a random moment, and notes what it promised.
func runUntilKilled(t *testing.T, dir string, promised map[job.ID]job.State) {
	cmd := child(t, "admit", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	n := 0
	for lines.Scan() {
		id, state, _ := strings.Cut(lines.Text(), " ")
		promised[job.ID(id)] = job.State(state)
		if n++; n == 1 {
			time.AfterFunc(time.Duration(rand.IntN(150))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait() // "signal: killed"
	if n == 0 {
		t.Fatal("the child promised nothing")
	}
}

// TestLogCutAnywhere cuts the write-ahead log at random bytes and flips one in the middle: what opens must be the
// state after some commit, with every earlier promise kept.
func TestLogCutAnywhere(t *testing.T) {
	src := t.TempDir()
	s := store.New(options(src))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	var promised []job.ID
	for range 60 {
		promised = append(promised, ledgertest.Admit(t, s, ledgertest.NewJob(t, 1000)).ID)
	}
	snap := t.TempDir() // copied while open, as a crash would leave it; by cp, as a close would drop SQLite's locks
	copyFile(t, filepath.Join(src, "state.db"), filepath.Join(snap, "state.db"), -1)
	copyFile(t, filepath.Join(src, "state.db-wal"), filepath.Join(snap, "state.db-wal"), -1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wal, err := os.Stat(filepath.Join(snap, "state.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	cuts := []int64{0, 1, 31, 32, 33, wal.Size() - 1, wal.Size()}
	for range 30 {
		cuts = append(cuts, rand.Int64N(wal.Size()))
	}
	for _, cut := range cuts {
		t.Run(fmt.Sprintf("at %d of %d", cut, wal.Size()), func(t *testing.T) {
			dir := t.TempDir()
			copyFile(t, filepath.Join(snap, "state.db"), filepath.Join(dir, "state.db"), -1)
			copyFile(t, filepath.Join(snap, "state.db-wal"), filepath.Join(dir, "state.db-wal"), cut)
			kept := openAndCountPrefix(t, dir, promised)
			if cut == wal.Size() && kept != len(promised) {
				t.Errorf("the whole log holds %d of %d promises", kept, len(promised))
			}
			audit(t, dir)
		})
	}
}

// openAndCountPrefix checks that the jobs in a store are the first of those promised, in order.
func openAndCountPrefix(t *testing.T, dir string, promised []job.ID) int {
	s := store.New(options(dir))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q, err := s.Queued(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, item := range q {
		if item.ID != promised[i] {
			t.Fatalf("job %d is %s, promised was %s", i, item.ID, promised[i])
		}
	}
	return len(q)
}

// copyFile copies n bytes, or all for -1.
func copyFile(t *testing.T, from, to string, n int64) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var r io.Reader = in
	if n >= 0 {
		r = io.LimitReader(in, n)
	}
	if _, err := io.Copy(out, r); err != nil {
		t.Fatal(err)
	}
}
