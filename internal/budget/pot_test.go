package budget_test

import (
	"math"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const top = math.MaxInt64

func TestEveryDimensionHasAKind(t *testing.T) {
	want := map[budget.Dim]budget.Kind{
		budget.WallMS: budget.Shared, budget.CPUMS: budget.Measured, budget.EgressBytes: budget.Ceiling, budget.OutputBytes: budget.Ceiling,
		budget.ArtifactBytes: budget.Ceiling, budget.InputTokens: budget.Reported, budget.OutputTokens: budget.Reported,
		budget.ToolCalls: budget.Reported, budget.CostMicroUSD: budget.Reported,
	}
	for _, d := range budget.Dims() {
		if d.Kind() != want[d] || d.Kind() == 0 {
			t.Errorf("%s is %v, want %v", d, d.Kind(), want[d])
		}
	}
	if len(budget.Dims()) != len(want) || budget.Dim("CPU_MS").Kind() != 0 || budget.Dim("").Kind() != 0 {
		t.Errorf("dimensions %v", budget.Dims())
	}
}

func TestRemainingNeverWrapsAndNeverExceedsTheLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		pot  budget.Pot
		want int64
	}{
		{"fresh", budget.Pot{Limit: 10}, 10},
		{"spent and granted", budget.Pot{Limit: 10, Spent: 3, Granted: 4}, 3},
		{"all gone", budget.Pot{Limit: 10, Spent: 3, Granted: 7}, 0},
		{"overshot", budget.Pot{Limit: 10, Spent: 30}, 0},
		{"both huge", budget.Pot{Limit: 10, Spent: top, Granted: top}, 0},
		{"huge limit", budget.Pot{Limit: top, Spent: top, Granted: 1}, 0},
		{"zero pot", budget.Pot{}, 0},
		{"negative limit", budget.Pot{Limit: -1}, 0},
		{"negative spending gives nothing", budget.Pot{Limit: 10, Spent: -5, Granted: math.MinInt64}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.pot.Remaining(); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
	if p := (budget.Pot{Limit: 1, Spent: top}).Spend(5); p.Spent != top {
		t.Errorf("spending wraps to %d", p.Spent)
	}
}

func TestReserve(t *testing.T) {
	for _, c := range []struct {
		name    string
		d       budget.Dim
		pot     budget.Pot
		ask     *int64
		places  int
		strict  bool
		want    int64
		clamped bool
		code    job.Code
	}{
		{"named and left", budget.CPUMS, budget.Pot{Limit: 100}, new(int64(40)), 7, false, 40, false, ""},
		{"all that is left", budget.CPUMS, budget.Pot{Limit: 100, Spent: 60}, new(int64(40)), 7, true, 40, false, ""},
		{"more than left is clamped", budget.CPUMS, budget.Pot{Limit: 100, Granted: 90}, new(int64(40)), 7, false, 10, true, ""},
		{"more than left and strict", budget.CPUMS, budget.Pot{Limit: 100, Granted: 90}, new(int64(40)), 7, true, 0, false, job.CodeBudgetExhausted},
		{"nothing left", budget.CPUMS, budget.Pot{Limit: 100, Spent: 100}, new(int64(1)), 7, false, 0, false, job.CodeBudgetExhausted},
		{"nothing left of bytes", budget.EgressBytes, budget.Pot{Limit: 100, Spent: 100}, nil, 7, false, 0, false, job.CodeBudgetExhausted},
		{"unnamed: a share for each place and the parent", budget.CPUMS, budget.Pot{Limit: 100}, nil, 7, false, 12, false, ""},
		{"unnamed: half at most", budget.InputTokens, budget.Pot{Limit: 100}, nil, 1, true, 50, false, ""},
		{"unnamed: half at most, no place", budget.InputTokens, budget.Pot{Limit: 100}, nil, 0, false, 50, false, ""},
		{"unnamed: negative places", budget.InputTokens, budget.Pot{Limit: 100}, nil, math.MinInt, false, 50, false, ""},
		{"unnamed: no share is left", budget.ToolCalls, budget.Pot{Limit: 5}, nil, 7, false, 0, false, job.CodeBudgetExhausted},
		{"unnamed: places without end", budget.ToolCalls, budget.Pot{Limit: 5}, nil, math.MaxInt, false, 0, false, job.CodeBudgetExhausted},
		{"a deadline is copied whole", budget.WallMS, budget.Pot{Limit: 100, Spent: 30}, nil, 7, false, 70, false, ""},
		{"a ceiling is copied whole", budget.OutputBytes, budget.Pot{Limit: 100, Spent: 30}, nil, 7, false, 70, false, ""},
		{"a ceiling is clamped", budget.OutputBytes, budget.Pot{Limit: 100, Spent: 30}, new(int64(80)), 7, false, 70, true, ""},
		{"0", budget.CPUMS, budget.Pot{Limit: 100}, new(int64(0)), 7, false, 0, false, job.CodeInvalid},
		{"negative", budget.CPUMS, budget.Pot{Limit: 100}, new(int64(-1)), 7, false, 0, false, job.CodeInvalid},
		{"the most negative", budget.CPUMS, budget.Pot{Limit: 100}, new(int64(math.MinInt64)), 7, false, 0, false, job.CodeInvalid},
		{"the largest", budget.CPUMS, budget.Pot{Limit: top}, new(int64(top)), 7, true, top, false, ""},
		{"no such dimension", "gpu_ms", budget.Pot{Limit: 100}, new(int64(1)), 7, false, 0, false, job.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, clamped, err := budget.Reserve(c.d, c.pot, c.ask, c.places, c.strict)
			if got != c.want || clamped != c.clamped || (err == nil) != (c.code == "") {
				t.Fatalf("%d, clamped %v, %v", got, clamped, err)
			}
			if err == nil {
				return
			}
			if err.Code != c.code || len(err.Violations) != 1 || c.d.Kind() != 0 && (err.Field != c.d.Field() || err.Violations[0].Asked == "") {
				t.Errorf("%+v", err)
			}
		})
	}
}

func TestWarningsComeOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int64
		steps []int64
		want  []int
	}{
		{"one by one", 100, []int64{49, 1, 24, 1, 14, 1, 10}, []int{50, 75, 90}},
		{"all at once", 100, []int64{95}, []int{50, 75, 90}},
		{"nothing spent", 1, []int64{0, 0}, nil},
		{"the smallest limit", 1, []int64{1, 5}, []int{50, 75, 90}},
		{"an odd limit", 3, []int64{1, 1, 1}, []int{50, 75, 90}},
		{"the largest limit", top, []int64{top / 2, 1, top / 2}, []int{50, 75, 90}},
		{"overshoot", 10, []int64{top, top}, []int{50, 75, 90}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, got := budget.Pot{Limit: c.limit}, []int(nil)
			for _, n := range c.steps {
				var reached []int
				p, reached = p.Spend(n).Warn()
				got = append(got, reached...)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestWarningsStandAtTheirShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, top)).Draw(t, "limit")
		spent := rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, top)).Draw(t, "spent")
		_, reached := budget.Pot{Limit: limit, Spent: spent}.Warn()
		for _, percent := range []int{50, 75, 90} {
			// limit × percent ÷ 100 without overflow: exact in the parts of 100 and their rest.
			threshold := limit/100*int64(percent) + (limit%100*int64(percent)+99)/100
			if want := spent >= threshold && spent > 0; want != slices.Contains(reached, percent) {
				t.Fatalf("%d of %d: %d %% reached %v", spent, limit, percent, reached)
			}
		}
	})
}

func TestMeetIsTheTighterOfBoth(t *testing.T) {
	a := budget.Limits{budget.CPUMS: 10, budget.ToolCalls: 3}
	b := budget.Limits{budget.CPUMS: 7, budget.OutputBytes: 5, budget.ToolCalls: 4}
	for _, m := range []budget.Limits{a.Meet(b), b.Meet(a)} {
		if len(m) != 3 || m[budget.CPUMS] != 7 || m[budget.OutputBytes] != 5 || m[budget.ToolCalls] != 3 {
			t.Errorf("%v", m)
		}
	}
	if a.Meet(nil) != nil || budget.Limits(nil).Meet(b) != nil || len(a) != 2 {
		t.Error("missing limits must stay missing, and nothing given may change")
	}
	if n, limited := budget.Limits(nil).Of(budget.CPUMS); n != 0 || !limited {
		t.Error("missing limits allow something")
	}
	if _, limited := (budget.Limits{}).Of(budget.CPUMS); limited {
		t.Error("empty limits bind")
	}
}

func TestAmountsAreShownInTheirUnits(t *testing.T) {
	for _, c := range []struct {
		d    budget.Dim
		n    int64
		want string
	}{
		{budget.CPUMS, 90_000, "1m30s"}, {budget.WallMS, top, "9223372036854775807ms"}, {budget.WallMS, -1, "-1ms"}, {budget.OutputBytes, 3 << 20, "3MiB"},
		{budget.EgressBytes, 1025, "1025B"}, {budget.ToolCalls, 7, "7"}, {budget.CostMicroUSD, 1_500_000, "1500000"},
	} {
		if got := c.d.Show(c.n); got != c.want {
			t.Errorf("%s %d: %s, want %s", c.d, c.n, got, c.want)
		}
	}
}
