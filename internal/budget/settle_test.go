package budget_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

func TestGrantIsTheParentsWhereNothingIsAsked(t *testing.T) {
	pots := budget.NewPots(budget.Limits{budget.WallMS: 1000, budget.CPUMS: 90, budget.EgressBytes: 50, budget.CostMicroUSD: 20})
	g, err := pots.Reserve(nil, 8, false)
	if err != nil {
		t.Fatal(err)
	}
	want := budget.Grant{
		Limits: budget.Limits{budget.WallMS: 1000, budget.CPUMS: 10, budget.EgressBytes: 50, budget.CostMicroUSD: 2},
		Held:   budget.Limits{budget.CPUMS: 10, budget.CostMicroUSD: 2},
	}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Error(diff)
	}
	if pots[budget.CPUMS].Granted != 0 {
		t.Error("deciding a grant changed the pots")
	}
	pots.Hold(g)
	if pots[budget.CPUMS].Granted != 10 || pots[budget.EgressBytes].Granted != 0 || pots[budget.WallMS].Remaining() != 1000 {
		t.Errorf("%+v", pots)
	}
}

func TestAChildMayBeLimitedWhereItsParentIsNot(t *testing.T) {
	g, err := budget.Pots{}.Reserve(budget.Limits{budget.ToolCalls: 5}, 8, true)
	if err != nil || g.Limits[budget.ToolCalls] != 5 || len(g.Held) != 0 {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestTheChildsOwnLimitBindsItsGrant(t *testing.T) {
	pots := budget.NewPots(budget.Limits{budget.CPUMS: 90, budget.OutputBytes: 50, budget.ToolCalls: 90})
	most := budget.Limits{budget.CPUMS: 3, budget.OutputBytes: 20, budget.ArtifactBytes: 7, budget.ToolCalls: 80}
	for _, c := range []struct {
		name   string
		ask    budget.Limits
		most   budget.Limits
		strict bool
		want   budget.Grant
		bad    []string
	}{
		{"unnamed: the lower of share and limit", nil, most, false, budget.Grant{
			Limits: budget.Limits{budget.CPUMS: 3, budget.OutputBytes: 20, budget.ArtifactBytes: 7, budget.ToolCalls: 10},
			Held:   budget.Limits{budget.CPUMS: 3, budget.ToolCalls: 10}}, nil},
		{"named over the limit", budget.Limits{budget.CPUMS: 60, budget.ArtifactBytes: 9}, most, false, budget.Grant{
			Limits: budget.Limits{budget.CPUMS: 3, budget.OutputBytes: 20, budget.ArtifactBytes: 7, budget.ToolCalls: 10},
			Held:   budget.Limits{budget.CPUMS: 3, budget.ToolCalls: 10}, Clamped: []budget.Dim{budget.CPUMS, budget.ArtifactBytes}}, nil},
		{"named over the limit and strict", budget.Limits{budget.CPUMS: 60, budget.ArtifactBytes: 9}, most, true, budget.Grant{}, []string{"budget.cpu_ms", "budget.artifact_bytes"}},
		{"missing limits allow nothing", budget.Limits{budget.CPUMS: 1}, nil, false, budget.Grant{}, []string{"budget.wall_ms", "budget.cpu_ms", "budget.egress_bytes",
			"budget.output_bytes", "budget.artifact_bytes", "budget.input_tokens", "budget.output_tokens", "budget.tool_calls", "budget.cost_micro_usd"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := pots.ReserveWithin(c.ask, c.most, 8, c.strict)
			if diff := cmp.Diff(c.want, g); diff != "" {
				t.Error(diff)
			}
			var e *job.Error
			var fields []string
			if errors.As(err, &e) {
				for _, v := range e.Violations {
					fields = append(fields, v.Field)
				}
			}
			if diff := cmp.Diff(c.bad, fields); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryExhaustedDimensionIsNamed(t *testing.T) {
	pots := budget.NewPots(budget.Limits{budget.CPUMS: 90, budget.EgressBytes: 50, budget.ToolCalls: 3, budget.OutputTokens: 9})
	pots[budget.EgressBytes] = pots[budget.EgressBytes].Spend(50)
	ask := budget.Limits{budget.CPUMS: 91, budget.OutputTokens: 9, budget.InputTokens: -4, "gpu": 1}
	_, err := pots.Reserve(ask, 8, true)
	var e *job.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	var fields []string
	for _, v := range e.Violations {
		fields = append(fields, v.Field)
	}
	want := []string{`budget."gpu"`, "budget.cpu_ms", "budget.egress_bytes", "budget.input_tokens", "budget.tool_calls"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Error(diff)
	}
}

func TestSettle(t *testing.T) {
	g := budget.Grant{
		Limits: budget.Limits{budget.WallMS: 1000, budget.CPUMS: 10, budget.EgressBytes: 50, budget.InputTokens: 100, budget.CostMicroUSD: 7},
		Held:   budget.Limits{budget.CPUMS: 10, budget.InputTokens: 100, budget.CostMicroUSD: 7},
	}
	release := budget.Amounts{budget.CPUMS: 10, budget.InputTokens: 100, budget.CostMicroUSD: 7}
	for _, c := range []struct {
		name   string
		use    budget.Use
		charge budget.Amounts
	}{
		{"never started: all comes back", budget.Use{Measured: budget.Amounts{budget.CPUMS: 4}}, budget.Amounts{}},
		{"measured and reported", budget.Use{Started: true, Measured: budget.Amounts{budget.WallMS: 900, budget.CPUMS: 4, budget.EgressBytes: 30},
			Reported: budget.Amounts{budget.InputTokens: 20, budget.CostMicroUSD: 1, budget.ToolCalls: 2}},
			budget.Amounts{budget.CPUMS: 4, budget.EgressBytes: 30, budget.InputTokens: 20, budget.CostMicroUSD: 1, budget.ToolCalls: 2}},
		{"overshoot is charged", budget.Use{Started: true, Measured: budget.Amounts{budget.CPUMS: 400}, Reported: budget.Amounts{budget.InputTokens: 500, budget.CostMicroUSD: 7}},
			budget.Amounts{budget.CPUMS: 400, budget.InputTokens: 500, budget.CostMicroUSD: 7}},
		{"no report: the whole grant", budget.Use{Started: true, Measured: budget.Amounts{budget.CPUMS: 0}},
			budget.Amounts{budget.CPUMS: 0, budget.InputTokens: 100, budget.CostMicroUSD: 7}},
		{"cost unknown: the grant's cost", budget.Use{Started: true, Measured: budget.Amounts{budget.CPUMS: 1}, Reported: budget.Amounts{budget.InputTokens: 3}},
			budget.Amounts{budget.CPUMS: 1, budget.InputTokens: 3, budget.CostMicroUSD: 7}},
		{"a negative report is none", budget.Use{Started: true, Measured: budget.Amounts{budget.CPUMS: 1}, Reported: budget.Amounts{budget.InputTokens: -3, budget.CostMicroUSD: 0}},
			budget.Amounts{budget.CPUMS: 1, budget.InputTokens: 100, budget.CostMicroUSD: 0}},
		{"no measurement: the whole grant", budget.Use{Started: true, Reported: budget.Amounts{budget.InputTokens: 1, budget.CostMicroUSD: 1}},
			budget.Amounts{budget.CPUMS: 10, budget.InputTokens: 1, budget.CostMicroUSD: 1}},
		{"descendants count", budget.Use{Started: true, Measured: budget.Amounts{budget.CPUMS: 2, budget.EgressBytes: 1}, Below: budget.Amounts{budget.CPUMS: 5, budget.EgressBytes: 8, budget.InputTokens: 30},
			Reported: budget.Amounts{budget.InputTokens: 20, budget.CostMicroUSD: 1}},
			budget.Amounts{budget.CPUMS: 7, budget.EgressBytes: 9, budget.InputTokens: 50, budget.CostMicroUSD: 1}},
		{"descendants that overshot, without a report", budget.Use{Started: true, Below: budget.Amounts{budget.CPUMS: 50, budget.InputTokens: 300}},
			budget.Amounts{budget.CPUMS: 50, budget.InputTokens: 300, budget.CostMicroUSD: 7}},
		{"sums saturate", budget.Use{Started: true, Measured: budget.Amounts{budget.CPUMS: top}, Below: budget.Amounts{budget.CPUMS: top}, Reported: budget.Amounts{budget.InputTokens: 0, budget.CostMicroUSD: 0}},
			budget.Amounts{budget.CPUMS: top, budget.InputTokens: 0, budget.CostMicroUSD: 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(budget.Settlement{Charge: c.charge, Release: release}, budget.Settle(g, c.use)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAGrantSettlesOnce(t *testing.T) {
	a := budget.NewAccount(budget.Limits{budget.CPUMS: 100})
	if _, err := a.Reserve("c1", budget.Limits{budget.CPUMS: 60}, budget.Limits{}, 8, false); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Reserve("c1", budget.Limits{budget.CPUMS: 1}, budget.Limits{}, 8, false); err == nil {
		t.Error("one id holds two grants")
	}
	use := budget.Use{Started: true, Measured: budget.Amounts{budget.CPUMS: 20}}
	if _, ok := a.Settle("c1", use); !ok {
		t.Fatal("not settled")
	}
	before := a.Clone()
	for _, id := range []string{"c1", "never"} {
		if s, ok := a.Settle(id, use); ok || s.Charge != nil || !cmp.Equal(before, a) {
			t.Errorf("%s: settled again: %+v", id, s)
		}
	}
	if p := a.Pots[budget.CPUMS]; p.Spent != 20 || p.Granted != 0 {
		t.Errorf("%+v", p)
	}
}
