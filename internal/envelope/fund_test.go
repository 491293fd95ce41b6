package envelope_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// funded narrows and funds a child of a root with these limits and pots.
func funded(t *testing.T, parentBudget budget.Limits, pots budget.Pots, r envelope.Request, profile *envelope.Profile) (envelope.Envelope, budget.Grant, *job.Error) {
	t.Helper()
	parent := root(t, envelope.Request{})
	parent.Budget = parentBudget
	a := envelope.Above{Parent: &parent, ParentID: parentID, LeftMS: 600_000, Profile: profile}
	e, bad := envelope.Narrow(a, r)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return envelope.Fund(e, a, r, pots, 7)
}

func TestAGrantBecomesTheChildsLimits(t *testing.T) {
	limits := budget.Limits{budget.WallMS: 100_000, budget.CPUMS: 8000, budget.OutputBytes: 500, budget.ToolCalls: 80}
	pots := budget.NewPots(limits)
	pots[budget.WallMS] = pots[budget.WallMS].Spend(40_000)
	h := helper()
	e, g, err := funded(t, limits, pots, envelope.Request{Budget: budget.Limits{budget.CPUMS: 9000, budget.InputTokens: 5}}, &h)
	if err != nil {
		t.Fatal(err)
	}
	want := budget.Limits{budget.WallMS: 60_000, budget.CPUMS: 8000, budget.OutputBytes: 500, budget.ToolCalls: 5, budget.InputTokens: 5}
	if diff := cmp.Diff(want, e.Budget); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(budget.Limits{budget.CPUMS: 8000, budget.ToolCalls: 5}, g.Held); diff != "" {
		t.Error(diff)
	}
	if e.Posture.TimeoutMS != 60_000 || e.Origins["timeout"] != envelope.Clamped || e.Origins["budget.cpu_ms"] != envelope.Clamped || e.Origins["budget.input_tokens"] != envelope.FromRequest {
		t.Errorf("timeout %d, %v", e.Posture.TimeoutMS, e.Origins)
	}
}

func TestAnExhaustedBudgetIsADenial(t *testing.T) {
	limits := budget.Limits{budget.CPUMS: 8000, budget.OutputBytes: 500, budget.WallMS: 100_000}
	spend := func(d budget.Dim, n int64) budget.Pots {
		pots := budget.NewPots(limits)
		pots[d] = pots[d].Spend(n)
		return pots
	}
	for _, c := range []struct {
		name   string
		pots   budget.Pots
		r      envelope.Request
		fields []string
	}{
		{"cpu", spend(budget.CPUMS, 8000), envelope.Request{}, []string{"budget.cpu"}},
		{"bytes", spend(budget.OutputBytes, 500), envelope.Request{}, []string{"budget.output_bytes"}},
		{"strict", spend(budget.CPUMS, 1000), envelope.Request{Budget: budget.Limits{budget.CPUMS: 8000}, Strict: true}, []string{"budget.cpu"}},
		{"less wall clock than a job can have", spend(budget.WallMS, 99_001), envelope.Request{}, []string{"timeout"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, g, err := funded(t, limits, c.pots, c.r, nil)
			if err == nil || err.Code != job.CodeBudgetExhausted || err.Hint == "" || g.Held != nil {
				t.Fatalf("%+v, %v", g, err)
			}
			var fields []string
			for _, v := range err.Violations {
				fields = append(fields, v.Field)
			}
			if diff := cmp.Diff(c.fields, fields); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARootAndAnOperatorsTreeHoldNothing(t *testing.T) {
	p := team()
	r := envelope.Request{Budget: budget.Limits{budget.CPUMS: 500}}
	e, bad := envelope.Narrow(envelope.Above{Profile: &p}, r)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	e, g, err := envelope.Fund(e, envelope.Above{Profile: &p}, r, nil, 7)
	if err != nil || len(g.Held) > 0 || e.Budget[budget.CPUMS] != 500 {
		t.Errorf("a root: %+v, %v", g, err)
	}
	parent := root(t, envelope.Request{})
	parent.BudgetInherit = envelope.BudgetOperator
	above := envelope.Above{Parent: &parent, LeftMS: 1e6}
	e, bad = envelope.Narrow(above, envelope.Request{})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	pots := budget.NewPots(parent.Budget)
	pots[budget.CPUMS] = pots[budget.CPUMS].Spend(60_000)
	if e, g, err = envelope.Fund(e, above, envelope.Request{}, pots, 7); err != nil || len(g.Held) > 0 || e.Budget[budget.CPUMS] != 60_000 {
		t.Errorf("an operator's tree: %+v, %v", g, err)
	}
}

// What the project's file names is asked like what the request names, and the request's word goes first.
func TestAProjectsBudgetIsAskedToo(t *testing.T) {
	parent := root(t, envelope.Request{})
	parent.Budget = budget.Limits{budget.CPUMS: 8000, budget.ToolCalls: 80, budget.WallMS: 100_000}
	project := envelope.Request{Budget: budget.Limits{budget.CPUMS: 500, budget.ToolCalls: 9}, Amounts: envelope.Ask{"timeout": 50_000}, Strict: true}
	a := envelope.Above{Parent: &parent, LeftMS: 600_000, Project: &project}
	r := envelope.Request{Budget: budget.Limits{budget.CPUMS: 300}}
	e, bad := envelope.Narrow(a, r)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	ask, strict := envelope.Asks(e, a, r)
	if diff := cmp.Diff(budget.Limits{budget.CPUMS: 300, budget.ToolCalls: 9}, ask); diff != "" || !strict {
		t.Error(diff, strict)
	}
	pots := budget.NewPots(parent.Budget)
	if e, _, err := envelope.Fund(e, a, r, pots, 7); err != nil || e.Budget[budget.CPUMS] != 300 || e.Posture.TimeoutMS != 50_000 {
		t.Errorf("%+v, %v", e.Budget, err)
	}
	pots[budget.WallMS] = pots[budget.WallMS].Spend(60_000)
	if _, _, err := envelope.Fund(e, a, r, pots, 7); err == nil || err.Field != "timeout" {
		t.Errorf("a strict timeout was cut: %v", err)
	}
	pots[budget.CPUMS], pots[budget.ToolCalls] = pots[budget.CPUMS].Spend(8000), pots[budget.ToolCalls].Spend(80)
	_, _, err := envelope.Fund(e, a, r, pots, 7)
	if err == nil || err.Field != "" || len(err.Violations) != 2 || err.Violations[0].Field != "budget.cpu" || err.Violations[1].Field != "budget.tool_calls" {
		t.Errorf("%+v", err)
	}
}

// Limits that are missing anywhere above allow nothing, and read back as missing.
func TestMissingBudgetsStayMissing(t *testing.T) {
	p, limits := team(), team()
	limits.Allows.Budget = nil
	parent := root(t, envelope.Request{})
	a := envelope.Above{Parent: &parent, LeftMS: 1e6, Limits: &limits}
	if _, bad := envelope.Narrow(a, envelope.Request{}); len(bad) != 1 || bad[0].Field != "timeout" || bad[0].Code != job.CodeBudgetExhausted {
		t.Errorf("%+v", bad)
	}
	p.Allows.Budget = nil
	if _, bad := envelope.Narrow(envelope.Above{Profile: &p}, envelope.Request{Budget: budget.Limits{budget.CPUMS: 5}}); len(bad) != 1 || bad[0].Field != "timeout" {
		t.Errorf("%+v", bad)
	}
}
