package budget_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

func TestAmountsAreWholeAndPositive(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "0042": 42, "9223372036854775807": math.MaxInt64} {
		if n, err := budget.Parse(budget.CPUMS, text); err != nil || n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "0", "000", "-0", "-1", "-9223372036854775809", "+1", "1.0", "1.5", ".5", "1e3", "1E999", "NaN", "nan", "Infinity", "inf",
		"0x10", "1_000", " 1", "1 ", "٣", "9223372036854775808", "99999999999999999999999999", "null", "true", `"1"`, "unlimited", "1GiB", strings.Repeat("9", 1e5)} {
		n, err := budget.Parse(budget.CPUMS, text)
		if err == nil || err.Code != job.CodeInvalid || err.Field != "budget.cpu_ms" || n != 0 {
			t.Errorf("%.40q: %d, %v", text, n, err)
			continue
		}
		if v := err.Violations; len(v) != 1 || v[0].Field != "budget.cpu_ms" || v[0].Allowed != "1 to 9223372036854775807" || v[0].Why == "" || len(err.Error()) > 300 {
			t.Errorf("%.40q: %+v", text, v)
		}
	}
}

func TestEveryFaultOfABudgetIsNamed(t *testing.T) {
	_, err := budget.ParseAll(map[string]string{"cpu_ms": "-1", "CPU_MS": "1", "tool_calls": "NaN", "wall_ms": "5", "cost": "1"})
	var e *job.Error
	if !errors.As(err, &e) || e.Code != job.CodeInvalid {
		t.Fatal(err)
	}
	var fields []string
	for _, v := range e.Violations {
		fields = append(fields, v.Field)
	}
	if diff := cmp.Diff([]string{`budget."CPU_MS"`, `budget."cost"`, "budget.cpu_ms", "budget.tool_calls"}, fields); diff != "" {
		t.Error(diff)
	}
	l, err := budget.ParseAll(nil)
	if err != nil || l == nil {
		t.Errorf("no amounts: %v, %v", l, err)
	}
}

func TestLimitsReadBack(t *testing.T) {
	for _, l := range []budget.Limits{nil, {}, {budget.CPUMS: 1, budget.CostMicroUSD: math.MaxInt64}} {
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		back := budget.Limits{budget.ToolCalls: 9}
		if err := json.Unmarshal(b, &back); err != nil || !cmp.Equal(l, back) {
			t.Errorf("%s: %v, %v", b, back, err)
		}
		if len(l.Check()) > 0 {
			t.Errorf("%v: %+v", l, l.Check())
		}
	}
	if bad := (budget.Limits{budget.CPUMS: 0, budget.ToolCalls: -1, "x": 1, budget.WallMS: 5}).Check(); len(bad) != 3 {
		t.Errorf("%+v", bad)
	}
}

func TestLimitsAreReadStrictly(t *testing.T) {
	for _, text := range []string{`{"cpu_ms":0}`, `{"cpu_ms":-1}`, `{"cpu_ms":1.5}`, `{"cpu_ms":1e999}`, `{"cpu_ms":1e3}`, `{"cpu_ms":"1"}`, `{"cpu_ms":null}`, `{"cpu_ms":9223372036854775808}`,
		`{"cpu_ms":{"a":1}}`, `{"CPU_ms":1}`, `{"gpu":1}`, `{"cpu_ms":1,"cpu_ms":2}`, `[]`, `1`, `"x"`, `true`, `{"cpu_ms":[` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `]}`} {
		var l budget.Limits
		if err := json.Unmarshal([]byte(text), &l); err == nil || l != nil {
			t.Errorf("%.60s: %v", text, l)
		}
	}
}

func FuzzLimits(f *testing.F) {
	for _, s := range []string{`{}`, `null`, `{"cpu_ms":5}`, `{"cpu_ms":1,"cpu_ms":2}`, `{"tool_calls":-0}`, `{"a":`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var l budget.Limits
		if json.Unmarshal(b, &l) != nil {
			return
		}
		if bad := l.Check(); len(bad) > 0 {
			t.Errorf("%s: %+v", b, bad)
		}
	})
}
