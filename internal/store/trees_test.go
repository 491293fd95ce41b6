package store_test

import (
	"database/sql"
	"math"
	"path/filepath"
	"testing"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
	"sandboxd/internal/store/ledgertest"
)

// budgeted is an admission with a budget that the tree shares.
func budgeted(j job.Job, limits budget.Limits) store.Admission {
	a := ledgertest.Admission(j)
	a.Budget = &store.BudgetAsk{Inherit: envelope.BudgetShare, Limits: limits, Places: 2}
	return a
}

func TestFreezesSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	s := store.New(options(dir))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := store.Freeze{Scope: store.FreezeProfile, Name: "default", By: "uid:0", NowMS: ledgertest.Start}
	if err := s.Freeze(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if _, _, err := s.Admit(t.Context(), ledgertest.Admission(ledgertest.NewJob(t, 1000))); job.CodeOf(err) != job.CodeFrozen {
		t.Errorf("after a restart: %v", err)
	}
	if got, err := s.Freezes(t.Context()); err != nil || len(got) != 1 || got[0] != f {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestPruneTakesBudgetsAndFreezesOfATree(t *testing.T) {
	dir := t.TempDir()
	s := store.New(options(dir))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, kept := ledgertest.NewJob(t, 1000), ledgertest.NewJob(t, 1000)
	for _, j := range []job.Job{gone, kept} {
		if _, _, err := s.Admit(t.Context(), budgeted(j, budget.Limits{budget.CPUMS: 10})); err != nil {
			t.Fatal(err)
		}
		if err := s.Freeze(t.Context(), store.Freeze{Scope: store.FreezeTree, Name: string(j.ID), By: "uid:0", NowMS: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Finish(t.Context(), ledgertest.Success(gone, job.Queued)); err != nil {
		t.Fatal(err)
	}
	p := keepAll
	p.OlderThanMS = math.MaxInt64
	if ids := prune(t, s, p); len(ids) != 1 {
		t.Errorf("%v are gone", ids)
	}
	if got, err := s.Freezes(t.Context()); err != nil || len(got) != 1 || got[0].Name != string(kept.ID) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"budgets", "pots"} {
		var n int
		if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil || n != 1 {
			t.Errorf("%s: %d rows, %v", table, n, err)
		}
	}
	audit(t, dir)
}
