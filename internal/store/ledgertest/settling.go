package ledgertest

import (
	"errors"
	"math"
	"testing"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// settling is one way a job can end. All jobs are granted 100 of cpu_ms and of each reported dimension but cost, which
// is granted and has no limit above.
type settling struct {
	from   job.State
	finish func(*store.Finish) // nil: the job is cancelled (and unclaimed where it is starting)
	spent  map[budget.Dim]int64
}

var settlings = map[string]settling{
	"cancelled in the queue":           {job.Queued, nil, nil},
	"ended in the queue":               {job.Queued, func(*store.Finish) {}, nil},
	"unclaimed with a cancel":          {job.Starting, nil, nil},
	"never handed over":                {job.Starting, measured("cpu_ms", 5, "wall_ms", 9), nil},
	"measured":                         {job.Running, measured("cpu_ms", 40), map[budget.Dim]int64{"cpu_ms": 40}},
	"overshot":                         {job.Running, measured("cpu_ms", 170), map[budget.Dim]int64{"cpu_ms": 170}},
	"used nothing":                     {job.Finishing, measured("cpu_ms", 0), nil},
	"measured bytes":                   {job.Finishing, measured("cpu_ms", 0, "output_bytes", 7, "egress_bytes", 8, "artifact_bytes", 9), map[budget.Dim]int64{"output_bytes": 7, "egress_bytes": 8, "artifact_bytes": 9}},
	"without a measurement":            {job.Running, func(*store.Finish) {}, map[budget.Dim]int64{"cpu_ms": 100}},
	"with a measurement of nonsense":   {job.Running, measured("cpu_ms", -1, "luck", 3), map[budget.Dim]int64{"cpu_ms": 100}},
	"an unauthenticated report":        {job.Running, measured("cpu_ms", 1, "input_tokens", 50), map[budget.Dim]int64{"cpu_ms": 1}},
	"a report":                         {job.Running, reported("cpu_ms", 1, "input_tokens", 50, "output_tokens", 130, "tool_calls", 0, "cost_micro_usd", 3), map[budget.Dim]int64{"cpu_ms": 1, "input_tokens": 50, "output_tokens": 130, "cost_micro_usd": 3}},
	"a report without some":            {job.Running, reported("cpu_ms", 1, "input_tokens", 50), map[budget.Dim]int64{"cpu_ms": 1, "input_tokens": 50, "output_tokens": 100, "tool_calls": 100, "cost_micro_usd": 100}},
	"no report where one was due":      {job.Running, unreported("cpu_ms", 1), map[budget.Dim]int64{"cpu_ms": 1, "input_tokens": 100, "output_tokens": 100, "tool_calls": 100, "cost_micro_usd": 100}},
	"an unauthenticated report, due":   {job.Running, unreported("cpu_ms", 1, "input_tokens", 50), map[budget.Dim]int64{"cpu_ms": 1, "input_tokens": 100, "output_tokens": 100, "tool_calls": 100, "cost_micro_usd": 100}},
	"no report of what never started":  {job.Starting, unreported(), nil},
	"a time of start given at the end": {job.Starting, startedLate, map[budget.Dim]int64{"cpu_ms": 6}},
}

func measured(kv ...any) func(*store.Finish) {
	return func(f *store.Finish) {
		f.Measured = map[string]int64{}
		for i := 0; i < len(kv); i += 2 {
			f.Measured[kv[i].(string)] = int64(kv[i+1].(int))
		}
	}
}

func reported(kv ...any) func(*store.Finish) {
	return func(f *store.Finish) {
		measured(kv...)(f)
		f.Reported, f.ChargeUnreported = true, true
	}
}

func unreported(kv ...any) func(*store.Finish) {
	return func(f *store.Finish) {
		measured(kv...)(f)
		f.ChargeUnreported = true
	}
}

func startedLate(f *store.Finish) {
	measured("cpu_ms", 6)(f)
	f.Times.Started = Start
}

// settle ends a job in its way.
func (s settling) settle(t *testing.T, l store.Ledger, j job.Job) {
	t.Helper()
	Bring(t, l, j, s.from)
	if s.finish == nil {
		mustCancel(t, l, j, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
		if s.from == job.Starting {
			if err := l.Move(t.Context(), store.Move{ID: j.ID, Attempt: 1, From: job.Starting, To: job.Queued, NowMS: Start}); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	f := Success(j, s.from)
	s.finish(&f)
	if err := l.Finish(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func settlePaths(t *testing.T, l store.Ledger) {
	above := budget.Limits{budget.CPUMS: 1000, budget.InputTokens: 1000, budget.OutputTokens: 1000, budget.ToolCalls: 1000}
	grant := budget.Limits{budget.CPUMS: 100, budget.InputTokens: 100, budget.OutputTokens: 100, budget.ToolCalls: 100, budget.CostMicroUSD: 100}
	for name, s := range settlings {
		t.Run(name, func(t *testing.T) {
			root := payer(t, l, above)
			child := mustAdmit(t, l, budgeted(NewChild(t, root), grant))
			wants(t, l, root, amounts{"cpu_ms": {1000, 0, 100}, "input_tokens": {1000, 0, 100}, "output_tokens": {1000, 0, 100}, "tool_calls": {1000, 0, 100}})
			s.settle(t, l, child)
			if got := mustJob(t, l, child.ID); got.State != job.Done {
				t.Fatalf("it is %s", got.State)
			}
			own, paid := amounts{}, amounts{}
			for d, n := range grant {
				own[d] = [3]int64{n, s.spent[d], 0}
			}
			for d, n := range above {
				paid[d] = [3]int64{n, s.spent[d], 0}
			}
			for d, n := range s.spent {
				if _, limited := grant[d]; !limited {
					own[d] = [3]int64{-1, n, 0}
				}
				if _, limited := above[d]; !limited {
					paid[d] = [3]int64{-1, n, 0}
				}
			}
			wants(t, l, child, own)
			wants(t, l, root, paid)
		})
	}
}

func settleUpward(t *testing.T, l store.Ledger) {
	root := payer(t, l, budget.Limits{budget.CPUMS: 1000, budget.InputTokens: 300})
	a := mustAdmit(t, l, budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: 400, budget.InputTokens: 100}))
	Bring(t, l, a, job.Running)
	b := mustAdmit(t, l, budgeted(NewChild(t, a), budget.Limits{budget.CPUMS: 100, budget.InputTokens: 60}))
	Bring(t, l, b, job.Running)
	end := func(j job.Job, how func(*store.Finish)) {
		t.Helper()
		f := Success(j, job.Running)
		how(&f)
		if err := l.Finish(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	end(b, unreported("cpu_ms", 30, "output_bytes", 11, "wall_ms", 5))
	wants(t, l, b, amounts{"cpu_ms": {100, 30, 0}, "input_tokens": {60, 60, 0}, "output_bytes": {-1, 11, 0}, "wall_ms": {-1, 5, 0}})
	wants(t, l, a, amounts{"cpu_ms": {400, 30, 0}, "input_tokens": {100, 60, 0}, "output_bytes": {-1, 11, 0}})
	wants(t, l, root, amounts{"cpu_ms": {1000, 0, 400}, "input_tokens": {300, 0, 100}})
	end(a, reported("cpu_ms", 300, "output_bytes", 4, "wall_ms", 6, "input_tokens", 10))
	wants(t, l, a, amounts{"cpu_ms": {400, 330, 0}, "input_tokens": {100, 70, 0}, "output_bytes": {-1, 15, 0}, "wall_ms": {-1, 6, 0}})
	wants(t, l, root, amounts{"cpu_ms": {1000, 330, 0}, "input_tokens": {300, 70, 0}, "output_bytes": {-1, 15, 0}})
	end(root, measured("cpu_ms", 5, "wall_ms", 7))
	wants(t, l, root, amounts{"cpu_ms": {1000, 335, 0}, "input_tokens": {300, 70, 0}, "output_bytes": {-1, 15, 0}, "wall_ms": {-1, 7, 0}})
}

func operatorBudget(t *testing.T, l store.Ledger) {
	limits := budget.Limits{budget.CPUMS: 50, budget.ToolCalls: 5}
	give := func(j job.Job) job.Job {
		a := budgeted(j, limits)
		a.Budget.Inherit = envelope.BudgetOperator
		j = mustAdmit(t, l, a)
		Bring(t, l, j, job.Running)
		return j
	}
	root := give(NewJob(t, 1000))
	child := give(NewChild(t, root))
	sharer := mustAdmit(t, l, budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: 20}))
	wants(t, l, child, amounts{"cpu_ms": {50, 0, 0}, "tool_calls": {5, 0, 0}})
	wants(t, l, root, amounts{"cpu_ms": {50, 0, 20}, "tool_calls": {5, 0, 1}})
	mustCancel(t, l, sharer, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
	f := Success(child, job.Running)
	unreported("cpu_ms", 60)(&f)
	if err := l.Finish(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	wants(t, l, child, amounts{"cpu_ms": {50, 60, 0}, "tool_calls": {5, 5, 0}})
	wants(t, l, root, amounts{"cpu_ms": {50, 0, 0}, "tool_calls": {5, 0, 0}})
}

func saturation(t *testing.T, l store.Ledger) {
	const most = math.MaxInt64
	root := payer(t, l, budget.Limits{budget.CPUMS: most, budget.OutputBytes: most})
	child := mustAdmit(t, l, budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: most}))
	wants(t, l, root, amounts{"cpu_ms": {most, 0, most}, "output_bytes": {most, 0, 0}})
	Bring(t, l, child, job.Running)
	f := Success(child, job.Running)
	f.Measured = map[string]int64{"cpu_ms": most, "output_bytes": 5}
	if err := l.Finish(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	f = Success(root, job.Running)
	f.Measured = map[string]int64{"cpu_ms": most, "output_bytes": most}
	if err := l.Finish(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	wants(t, l, root, amounts{"cpu_ms": {most, most, 0}, "output_bytes": {most, most, 0}})
}

// settleOnce lets ends of one child meet; whoever wins, its grant leaves the parent's pot once.
func settleOnce(t *testing.T, l store.Ledger) {
	root := payer(t, l, budget.Limits{budget.CPUMS: 1000})
	keeper := mustAdmit(t, l, budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: 100})) // a second settling would eat into its grant
	spent := int64(0)
	for i := range 200 {
		from := []job.State{job.Queued, job.Starting}[i%2]
		child := mustAdmit(t, l, budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: 100}))
		Bring(t, l, child, from)
		var won [4]bool
		parallel(t, 4, func(who int) {
			switch who {
			case 0:
				_, won[0], _ = l.Cancel(t.Context(), child.ID, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
			case 1:
				_ = l.Move(t.Context(), store.Move{ID: child.ID, Attempt: 1, From: job.Starting, To: job.Queued, NowMS: Start})
			default:
				f := Success(child, from)
				f.Measured, f.Times.Started = map[string]int64{"cpu_ms": 1}, Start
				err := l.Finish(t.Context(), f)
				if won[who] = err == nil; err != nil && !errors.Is(err, store.ErrFenced) {
					t.Error(err)
				}
			}
		})
		if won[2] || won[3] {
			spent++
		}
		mustCancel(t, l, child, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start}) // where the unclaim won
		wants(t, l, root, amounts{"cpu_ms": {1000, spent, 100}})
		if t.Failed() {
			t.Fatalf("round %d from %s: %v", i, from, won)
		}
	}
	mustCancel(t, l, keeper, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
	wants(t, l, root, amounts{"cpu_ms": {1000, spent, 0}})
}

func unclaimKeepsGrant(t *testing.T, l store.Ledger) {
	root := payer(t, l, budget.Limits{budget.CPUMS: 1000})
	child := mustAdmit(t, l, budgeted(NewChild(t, root), budget.Limits{budget.CPUMS: 100}))
	Bring(t, l, child, job.Starting)
	if err := l.Move(t.Context(), store.Move{ID: child.ID, Attempt: 1, From: job.Starting, To: job.Queued, NowMS: Start}); err != nil {
		t.Fatal(err)
	}
	wants(t, l, root, amounts{"cpu_ms": {1000, 0, 100}})
	wants(t, l, child, amounts{"cpu_ms": {100, 0, 0}})
}
