package ledgertest

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

func rootBudget(t *testing.T, l store.Ledger) {
	plain := Admit(t, l, NewJob(t, 1000))
	if plain.Grants != nil || potsOf(t, l, plain.ID) != nil {
		t.Errorf("a job without a budget: %v", plain.Grants)
	}
	limits := budget.Limits{budget.CPUMS: 1000, budget.WallMS: 60_000, budget.ToolCalls: 7, budget.OutputBytes: 1 << 40}
	root := mustAdmit(t, l, budgeted(NewJob(t, 1000), limits))
	wants(t, l, root, amounts{"cpu_ms": {1000, 0, 0}, "wall_ms": {60_000, 0, 0}, "tool_calls": {7, 0, 0}, "output_bytes": {1 << 40, 0, 0}})
	want := map[string]int64{"cpu_ms": 1000, "wall_ms": 60_000, "tool_calls": 7, "output_bytes": 1 << 40}
	if diff := cmp.Diff(root, mustJob(t, l, root.ID)); diff != "" || !maps.Equal(root.Grants, want) {
		t.Errorf("admitted with %v, read:\n%s", root.Grants, diff)
	}
	if got := list(t, l, store.Viewer{All: true}, store.Filter{Root: root.ID}); len(got) != 1 || !maps.Equal(got[0].Grants, want) {
		t.Errorf("listed: %+v", got)
	}
	free := mustAdmit(t, l, budgeted(NewJob(t, 1000), budget.Limits{}))
	wants(t, l, free, amounts{})
	all, err := l.Pots(t.Context(), plain.ID, root.ID, free.ID, NewJob(t, 1).ID)
	if err != nil || len(all) != 2 || len(all[free.ID]) != 0 {
		t.Errorf("of four: %v, %v", all, err)
	}
	var dims []string
	for _, p := range all[root.ID] {
		dims = append(dims, p.Dimension)
	}
	if got := strings.Join(dims, " "); got != "wall_ms cpu_ms output_bytes tool_calls" {
		t.Errorf("in the order %s", got)
	}
}

func childBudget(t *testing.T, l store.Ledger) {
	limits := budget.Limits{budget.CPUMS: 1000, budget.WallMS: 60_000, budget.InputTokens: 90, budget.EgressBytes: 500}
	for name, test := range map[string]struct {
		ask     store.BudgetAsk
		grants  map[string]int64
		clamped string
		held    map[budget.Dim]int64
	}{
		"what it names": {store.BudgetAsk{Limits: budget.Limits{"cpu_ms": 200, "wall_ms": 10, "input_tokens": 90, "egress_bytes": 500, "tool_calls": 4}, Strict: true},
			map[string]int64{"cpu_ms": 200, "wall_ms": 10, "input_tokens": 90, "egress_bytes": 500, "tool_calls": 4}, "", map[budget.Dim]int64{"cpu_ms": 200, "input_tokens": 90}},
		"a share where it names nothing": {store.BudgetAsk{Places: 4},
			map[string]int64{"cpu_ms": 200, "wall_ms": 60_000, "input_tokens": 18, "egress_bytes": 500}, "", map[budget.Dim]int64{"cpu_ms": 200, "input_tokens": 18}},
		"half where it is the last": {store.BudgetAsk{Places: 1},
			map[string]int64{"cpu_ms": 500, "wall_ms": 60_000, "input_tokens": 45, "egress_bytes": 500}, "", map[budget.Dim]int64{"cpu_ms": 500, "input_tokens": 45}},
		"what is left where it names more": {store.BudgetAsk{Limits: budget.Limits{"cpu_ms": math.MaxInt64, "egress_bytes": 501}, Places: 2},
			map[string]int64{"cpu_ms": 1000, "wall_ms": 60_000, "input_tokens": 30, "egress_bytes": 500}, "cpu_ms egress_bytes", map[budget.Dim]int64{"cpu_ms": 1000, "input_tokens": 30}},
		"what its profile allows": {store.BudgetAsk{Limits: budget.Limits{"cpu_ms": 500, "tool_calls": 9}, Most: budget.Limits{"cpu_ms": 300, "input_tokens": 3, "tool_calls": 4, "cost_micro_usd": 2}, Places: 1},
			map[string]int64{"cpu_ms": 300, "wall_ms": 60_000, "input_tokens": 3, "egress_bytes": 500, "tool_calls": 4, "cost_micro_usd": 2}, "cpu_ms tool_calls", map[budget.Dim]int64{"cpu_ms": 300, "input_tokens": 3}},
		"less what its parent has used": {store.BudgetAsk{Limits: budget.Limits{"cpu_ms": 500}, Places: 1, OwnUse: map[string]int64{"cpu_ms": 600, "input_tokens": 50, "wall_ms": 59_000, "egress_bytes": 1, "tool_calls": 5}},
			map[string]int64{"cpu_ms": 400, "wall_ms": 1000, "input_tokens": 20, "egress_bytes": 499}, "cpu_ms", map[budget.Dim]int64{"cpu_ms": 400, "input_tokens": 20}},
	} {
		t.Run(name, func(t *testing.T) {
			root := payer(t, l, limits)
			a := Admission(NewChild(t, root))
			test.ask.Inherit = envelope.BudgetShare
			a.Budget = &test.ask
			child := mustAdmit(t, l, a)
			if !maps.Equal(child.Grants, test.grants) || strings.Join(child.Clamped, " ") != test.clamped {
				t.Errorf("granted %v, clamped %v; want %v, %q", child.Grants, child.Clamped, test.grants, test.clamped)
			}
			if diff := cmp.Diff(child, mustJob(t, l, child.ID)); diff != "" {
				t.Errorf("read:\n%s", diff)
			}
			own, above := amounts{}, amounts{}
			for d, n := range test.grants {
				own[budget.Dim(d)] = [3]int64{n, 0, 0}
			}
			for d, n := range limits {
				above[d] = [3]int64{n, 0, test.held[d]}
			}
			wants(t, l, child, own)
			wants(t, l, root, above)
			toldClamps(t, l, child)
		})
	}
}

// endedUseCountsOnce: the meter of a ceiling has counted what an ended child wrote, and so has the ledger.
func endedUseCountsOnce(t *testing.T, l store.Ledger) {
	root := payer(t, l, budget.Limits{budget.CPUMS: 1000, budget.OutputBytes: 500})
	first := mustAdmit(t, l, budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: 100}))
	Bring(t, l, first, job.Running)
	f := Success(first, job.Running)
	f.Measured = map[string]int64{"cpu_ms": 100, "output_bytes": 200}
	if err := l.Finish(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ cpu, output, wantCPU, wantOutput int64 }{{50, 230, 850, 270}, {0, 0, 900, 300}, {0, 200, 900, 300}} {
		a := budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: 1000, budget.OutputBytes: 500})
		a.Budget.OwnUse = map[string]int64{"cpu_ms": test.cpu, "output_bytes": test.output}
		j := mustAdmit(t, l, a)
		if j.Grants["cpu_ms"] != test.wantCPU || j.Grants["output_bytes"] != test.wantOutput {
			t.Errorf("granted %v, want %+v", j.Grants, test)
		}
		mustCancel(t, l, j, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
	}
}

// toldClamps wants each cut dimension named in the event of its admission, with the amount granted.
func toldClamps(t *testing.T, l store.Reader, j job.Job) {
	t.Helper()
	var text string
	n := 0
	for _, e := range events(t, l, store.Viewer{Job: j.ID}) {
		if e.Payload["clamped"] != "" {
			text, n = e.Payload["clamped"], n+1
		}
	}
	if want := min(1, len(j.Clamped)); n != want {
		t.Errorf("told %d times, want %d", n, want)
	}
	for _, d := range j.Clamped {
		if !strings.Contains(text, d+": asked ") {
			t.Errorf("%q does not name %s", text, d)
		}
	}
}

func refusedChild(t *testing.T, l store.Ledger) {
	root := payer(t, l, budget.Limits{budget.CPUMS: 10, budget.InputTokens: 5, budget.OutputBytes: 100})
	mustAdmit(t, l, budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: 10, budget.InputTokens: 1}))
	budgetBefore, treeBefore, eventsBefore := potsOf(t, l, root.ID), tree(t, l, root.ID), len(events(t, l, store.Viewer{All: true}))
	for name, test := range map[string]struct {
		ask   store.BudgetAsk
		code  job.Code
		words []string
	}{
		"nothing is left":         {store.BudgetAsk{Limits: budget.Limits{"cpu_ms": 1, "input_tokens": 1}}, job.CodeBudgetExhausted, []string{"budget.cpu_ms", "asked 1", "0"}},
		"no share is left":        {store.BudgetAsk{Places: 100}, job.CodeBudgetExhausted, []string{"cpu_ms"}},
		"more than is left":       {store.BudgetAsk{Limits: budget.Limits{"output_bytes": 101}, Strict: true}, job.CodeBudgetExhausted, nil},
		"nothing":                 {store.BudgetAsk{Limits: budget.Limits{"cpu_ms": 0}}, job.CodeInvalid, []string{"cpu_ms"}},
		"less than nothing":       {store.BudgetAsk{Limits: budget.Limits{"cpu_ms": math.MinInt64}}, job.CodeInvalid, []string{"cpu_ms"}},
		"an unknown dimension":    {store.BudgetAsk{Limits: budget.Limits{"luck": 1}}, job.CodeInvalid, []string{"luck"}},
		"the parent used it up":   {store.BudgetAsk{Limits: budget.Limits{"input_tokens": 1}, OwnUse: map[string]int64{"input_tokens": 4}}, job.CodeBudgetExhausted, nil},
		"the parent used it all":  {store.BudgetAsk{OwnUse: map[string]int64{"output_bytes": math.MaxInt64}}, job.CodeBudgetExhausted, nil},
		"more than all there are": {store.BudgetAsk{Limits: budget.Limits{"input_tokens": math.MaxInt64}, Strict: true}, job.CodeBudgetExhausted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := Admission(NewChild(t, root))
			test.ask.Inherit = envelope.BudgetShare
			a.Budget = &test.ask
			_, _, err := l.Admit(t.Context(), a)
			refused(t, err, test.code, test.words...)
			wants(t, l, root, budgetBefore)
			if got := tree(t, l, root.ID); got != treeBefore {
				t.Errorf("the tree is %+v, was %+v", got, treeBefore)
			}
		})
	}
	if got := len(events(t, l, store.Viewer{All: true})); got != eventsBefore {
		t.Errorf("%d events, %d before", got, eventsBefore)
	}
}

func budgetFaults(t *testing.T, l store.Ledger) {
	with := payer(t, l, budget.Limits{})
	without := running(t, l, NewJob(t, 1000))
	operator := budgeted(NewJob(t, 1000), budget.Limits{})
	operator.Budget.Inherit = envelope.BudgetOperator
	free := mustAdmit(t, l, operator)
	Bring(t, l, free, job.Running)
	fault := func(name string, a store.Admission) {
		t.Helper()
		if _, _, err := l.Admit(t.Context(), a); err == nil || job.CodeOf(err) != job.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
	inherit := func(a store.Admission, word string) store.Admission {
		a.Budget.Inherit = word
		return a
	}
	fault("a root without limits", budgeted(NewJob(t, 1000), nil))
	fault("a limit of 0", budgeted(NewJob(t, 1000), budget.Limits{budget.CPUMS: 0}))
	fault("an unknown dimension", budgeted(NewJob(t, 1000), budget.Limits{"luck": 1}))
	fault("no word", inherit(budgeted(NewJob(t, 1000), budget.Limits{}), ""))
	fault("a wrong word", inherit(budgeted(NewJob(t, 1000), budget.Limits{}), "Share"))
	fault("a child without one", Admission(NewChild(t, with)))
	fault("a child with one of a job without", budgeted(NewChild(t, without), budget.Limits{}))
	fault("a child that does not share", inherit(budgeted(NewChild(t, with), budget.Limits{}), envelope.BudgetOperator))
	fault("a child without limits of its own", inherit(budgeted(NewChild(t, free), nil), envelope.BudgetOperator))
	mustAdmit(t, l, budgeted(NewChild(t, free), nil)) // sharing is narrower
}

func budgetConcurrent(t *testing.T, l store.Ledger) {
	const limit = 1000
	root := payer(t, l, budget.Limits{budget.CPUMS: limit, budget.OutputTokens: limit})
	var mu sync.Mutex
	var admitted []job.Job
	parallel(t, 50, func(i int) {
		a := budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: int64(50 + i), budget.OutputTokens: 100})
		if i%3 == 0 {
			a.Budget.Limits = nil
		}
		j, _, err := l.Admit(t.Context(), a)
		if err != nil {
			if job.CodeOf(err) != job.CodeBudgetExhausted {
				t.Error(err)
			}
			return
		}
		mu.Lock()
		defer mu.Unlock()
		admitted = append(admitted, j)
	})
	var cpu, tokens int64
	for _, j := range admitted {
		cpu, tokens = cpu+j.Grants["cpu_ms"], tokens+j.Grants["output_tokens"]
	}
	wants(t, l, root, amounts{"cpu_ms": {limit, 0, cpu}, "output_tokens": {limit, 0, tokens}})
	if cpu > limit || tokens > limit || len(admitted) < 2 {
		t.Errorf("%d children hold %d and %d of %d", len(admitted), cpu, tokens, limit)
	}
	half := len(admitted) / 2
	for _, j := range slices.Clone(admitted[:half]) {
		Bring(t, l, j, job.Running)
	}
	parallel(t, len(admitted), func(i int) {
		if i >= half {
			mustCancel(t, l, admitted[i], store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
			return
		}
		f := Success(admitted[i], job.Running)
		f.Measured, f.Reported = map[string]int64{"cpu_ms": 1, "output_tokens": 2}, true
		if err := l.Finish(t.Context(), f); err != nil {
			t.Error(err)
		}
	})
	wants(t, l, root, amounts{"cpu_ms": {limit, int64(half), 0}, "output_tokens": {limit, 2 * int64(half), 0}})
}
