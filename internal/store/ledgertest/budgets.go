package ledgertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// amounts are lines of a budget as tests write them: limit, spent and granted by dimension; a limit of -1 is none.
type amounts map[budget.Dim][3]int64

// potsOf reads a budget; nil where a job has none.
func potsOf(t testing.TB, l store.Trees, id job.ID) amounts {
	t.Helper()
	all, err := l.Pots(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return toAmounts(all[id])
}

func toAmounts(lines []store.PotLine) amounts {
	if lines == nil {
		return nil
	}
	out := amounts{}
	for _, p := range lines {
		limit := int64(-1)
		if p.Limit != nil {
			limit = *p.Limit
		}
		out[budget.Dim(p.Dimension)] = [3]int64{limit, p.Spent, p.Granted}
	}
	return out
}

// wants compares budgets.
func wants(t *testing.T, l store.Trees, j job.Job, want amounts) {
	t.Helper()
	if diff := cmp.Diff(want, potsOf(t, l, j.ID)); diff != "" {
		t.Errorf("the budget of %s (-want +got):\n%s", j.ID, diff)
	}
}

// budgeted is an admission with a budget that the tree shares.
func budgeted(j job.Job, limits budget.Limits) store.Admission {
	a := Admission(j)
	a.Budget = &store.BudgetAsk{Inherit: envelope.BudgetShare, Limits: limits, Places: 3}
	return a
}

func mustAdmit(t *testing.T, l store.Ledger, a store.Admission) job.Job {
	t.Helper()
	j, created, err := l.Admit(t.Context(), a)
	if err != nil || !created {
		t.Fatalf("admit: created %v, %v", created, err)
	}
	return j
}

// payer is a running root with a budget.
func payer(t *testing.T, l store.Ledger, limits budget.Limits) job.Job {
	t.Helper()
	j := mustAdmit(t, l, budgeted(NewJob(t, 1000), limits))
	Bring(t, l, j, job.Running)
	return j
}
