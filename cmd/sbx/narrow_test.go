package main

import (
	"reflect"
	"strings"
	"testing"

	"sandboxd/api"
)

func TestTheHelpNamesEveryKeyOfABudget(t *testing.T) {
	text := strings.ReplaceAll(runHelp, "\n", " ")
	for _, k := range budgetKeys() {
		if !strings.Contains(text, " "+k.name+"="+k.unit) {
			t.Errorf("--budget %s=%s is not in the help", k.name, k.unit)
		}
	}
}

// Every amount of a budget can be named, each by its own key.
func TestEveryAmountOfABudgetHasAKey(t *testing.T) {
	var b api.Budget
	for _, k := range budgetKeys() {
		before := b
		if err := k.set(&b, "1"); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
		if b == before {
			t.Errorf("%s sets nothing", k.name)
		}
	}
	for f, v := range reflect.ValueOf(b).Fields() {
		if f.Name != "Strict" && f.Name != "Inherit" && v.IsNil() {
			t.Errorf("%s has no key", f.Name)
		}
	}
}

func TestDollars(t *testing.T) {
	for text, want := range map[string]api.Int{"2": 2_000_000, "0.05": 50_000, "0.000001": 1, "12.5": 12_500_000} {
		if got, err := parseUSD(text); err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "0.0000001", "$2", "1_0", "99999999999999", "NaN", "1.5.5", "٣"} {
		if got, err := parseUSD(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestBranches(t *testing.T) {
	jobs := []api.TreeJob{{ID: "top", Parent: "elsewhere"}}
	for _, pair := range []string{"a top", "aa a", "aaa aa", "ab a", "b top", "ba b", "orphan nobody"} {
		id, parent, _ := strings.Cut(pair, " ")
		jobs = append(jobs, api.TreeJob{ID: id, Parent: parent})
	}
	want := `
top
├─ a
│  ├─ aa
│  │  └─ aaa
│  └─ ab
├─ b
│  └─ ba
└─ orphan`
	for lines, want := range map[treeLines]string{
		unicodeLines: want,
		asciiLines:   strings.NewReplacer("├─", "|-", "└─", "`-", "│", "|").Replace(want),
	} {
		got := ""
		for i, branch := range branches(jobs, lines) {
			got += "\n" + branch + jobs[i].ID
		}
		if got != want {
			t.Errorf("%s", got)
		}
	}
	if got := branches(nil, asciiLines); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestBudgetText(t *testing.T) {
	lines := []api.BudgetLine{
		{Dimension: "cpu_ms", Limit: ptr(int64(90_000)), Spent: 1500, Granted: 20_000, Left: ptr(int64(68_500))},
		{Dimension: "output_bytes", Spent: 2 << 20},
		{Dimension: "cost_micro_usd", Spent: 50_000, Left: ptr(int64(0))},
		{Dimension: "tool_calls", Spent: 7, Left: ptr(int64(3))},
	}
	want := "cpu 1.5s used, 20s granted, 1m8.5s left; output 2.0 MiB used; cost $0.050000 used, $0.000000 left; tool calls 7 used, 3 left"
	if got := budgetText(lines); got != want {
		t.Errorf("%s", got)
	}
}
