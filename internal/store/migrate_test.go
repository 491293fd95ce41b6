package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// A database of schema 1 goes on: its events are kept, and those of jobs are numbered from now on.
func TestSchema1IsMigrated(t *testing.T) {
	open(t, t.TempDir()) // the first lock of the process must be a store's
	dir := t.TempDir()
	chmod(t, dir, 0o700)
	schema, err := os.ReadFile("schema/0001.sql")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	j := ledgertest.NewJob(t, 1000)
	for _, step := range []string{
		string(schema), "PRAGMA application_id = 0x73627864", "PRAGMA user_version = 1",
		`INSERT INTO trees VALUES ('` + string(j.ID) + `', 'uid:1000', 1, 1, 1, 0, 0)`,
		`INSERT INTO jobs VALUES ('` + string(j.ID) + `', '` + string(j.ID) + `', '', 0, 'uid:1000', 1000, 1000, '', 'running', 1, 'node-a', 1, '', 0, 1, 1, 1, '', 0, '', 1, 0, 0, 0, 0, '')`,
		`INSERT INTO specs VALUES ('` + string(j.ID) + `', '{}', '', '', NULL)`,
		`INSERT INTO event_counters VALUES ('*', 1), ('uid:1000', 1)`,
		`INSERT INTO events VALUES (1, 'uid:1000', 1, 5, '` + string(j.ID) + `', '` + string(j.ID) + `', 'queued', '')`,
	} {
		if _, err := db.Exec(step); err != nil {
			t.Fatalf("%.60s: %v", step, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	chmod(t, filepath.Join(dir, "state.db"), 0o600)

	s := open(t, dir)
	if _, _, err := s.Cancel(t.Context(), j.ID, store.Cancel{Reason: job.ReasonByCaller, NowMS: 6}); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[store.Viewer]int{{Principal: "uid:1000"}: 2, {All: true}: 2, {Job: j.ID}: 1} {
		if got, err := s.Events(t.Context(), who, 0, 0); err != nil || len(got) != want {
			t.Errorf("%+v: %d events, want %d; %v", who, len(got), want, err)
		}
	}
}

// A database of schema 2 goes on: what lives in it has no budget, and what is new has one.
func TestSchema2IsMigrated(t *testing.T) {
	open(t, t.TempDir()) // the first lock of the process must be a store's
	dir := t.TempDir()
	s := store.New(options(dir))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	old := ledgertest.NewJob(t, 1000)
	ledgertest.Admit(t, s, old)
	ledgertest.Bring(t, s, old, job.Running)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{
		"DROP TABLE pots", "DROP TABLE budgets", "DROP TABLE freezes", "ALTER TABLE trees DROP COLUMN denied", "ALTER TABLE trees DROP COLUMN denied_told",
		"ALTER TABLE trees DROP COLUMN denied_second", "ALTER TABLE trees DROP COLUMN denied_in_second", "PRAGMA user_version = 2",
	} {
		if _, err := db.Exec(step); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { audit(t, dir) })
	s = open(t, dir)
	if j, err := s.Job(t.Context(), old.ID); err != nil || j.Grants != nil {
		t.Errorf("%v, %v", j.Grants, err)
	}
	if n, err := s.Deny(t.Context(), store.Denial{Parent: old.ID, Code: job.CodeInvalid, NowMS: 1}); err != nil || n != 1 {
		t.Errorf("its first denial: %d, %v", n, err)
	}
	child := ledgertest.NewChild(t, old)
	ledgertest.Admit(t, s, child)
	if err := s.Finish(t.Context(), ledgertest.Success(child, job.Queued)); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(t.Context(), ledgertest.Success(old, job.Running)); err != nil {
		t.Fatal(err)
	}
	if j, _, err := s.Admit(t.Context(), budgeted(ledgertest.NewJob(t, 1000), budget.Limits{budget.CPUMS: 5})); err != nil || j.Grants["cpu_ms"] != 5 {
		t.Errorf("a new job: %v, %v", j.Grants, err)
	}
}
