package ledgertest

import (
	"context"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// restart opens the ledger again, after a close or a crash; seldom, because it takes long.
func (m *model) restart(rt *rapid.T) {
	open := m.ledger.Reopen
	switch rapid.IntRange(0, 5).Draw(rt, "crash, close or neither") {
	case 0:
		open = m.ledger.Crash
	case 1:
	default:
		rt.Skip("not now")
	}
	if err := open(); err != nil {
		rt.Fatal(err)
	}
	m.check(rt)
}

// drain ends all that lives, children first, and looks whether the books balance.
func (m *model) drain(rt *rapid.T) {
	for _, t := range m.trees {
		below, err := m.ledger.Ledger().Descendants(context.Background(), t.root.ID, true)
		if err != nil || len(below) != t.live-min(t.live, 1) {
			rt.Fatalf("%d live descendants of %d, %v", len(below), t.live, err)
		}
		for _, id := range append(ids(below), t.root.ID) {
			if j := m.jobs[id]; j.State != job.Done {
				m.finishOne(rt, j, j.State)
			}
		}
		if t.live != 0 {
			rt.Fatalf("%d jobs still live", t.live)
		}
		m.checkTree(rt, t)
		m.checkBalance(rt, t)
	}
	m.check(rt)
}

// checkBalance compares what a tree has spent with what its jobs have used.
func (m *model) checkBalance(rt *rapid.T, t *modelTree) {
	if t.inherit != envelope.BudgetShare {
		return
	}
	all, err := m.ledger.Ledger().Pots(context.Background(), t.root.ID)
	if err != nil {
		rt.Fatal(err)
	}
	got := toAmounts(all[t.root.ID])
	for _, d := range budget.Dims() {
		if d != budget.WallMS && !t.inexact[d] && got[d][1] != t.paid[d] {
			rt.Fatalf("the tree spent %d of %s, its jobs %d", got[d][1], d, t.paid[d])
		}
	}
}

// checkTree compares the counters and budgets of a tree, and holds the bounds to what is stored.
func (m *model) checkTree(rt *rapid.T, t *modelTree) {
	l := m.ledger.Ledger()
	got, err := l.Tree(context.Background(), t.root.ID)
	if err != nil || got.JobsEver != t.ever || got.JobsLive != t.live {
		rt.Fatalf("tree %+v, want %d jobs, %d live: %v", got, t.ever, t.live, err)
	}
	if t.caps != (store.TreeCaps{}) && (got.JobsEver > t.caps.MaxJobs || got.JobsLive > t.caps.MaxLive) {
		rt.Fatalf("tree %+v, caps %+v", got, t.caps)
	}
	var all []job.ID
	for _, j := range t.jobs {
		all = append(all, j.ID)
	}
	pots, err := l.Pots(context.Background(), all...)
	if err != nil {
		rt.Fatal(err)
	}
	for _, j := range t.jobs {
		checkBudget(rt, j, toAmounts(pots[j.ID]))
	}
}

func checkBudget(rt *rapid.T, j *modelJob, got amounts) {
	if j.budget == nil {
		if got != nil {
			rt.Fatalf("job %s has a budget: %v", j.ID, got)
		}
		return
	}
	want := amounts{}
	for _, d := range budget.Dims() {
		limit, limited := j.budget.limit[d]
		if !limited {
			limit = -1
		}
		if limited || j.budget.spent[d] != 0 {
			want[d] = [3]int64{limit, j.budget.spent[d], j.budget.granted[d]}
		}
	}
	if !maps.Equal(got, want) {
		rt.Fatalf("job %s, %s, has the budget %v, want %v", j.ID, j.State, got, want)
	}
	for d, p := range got {
		if over := j.budget.over[d]; d != budget.WallMS && p[0] >= 0 && p[1]+p[2] > p[0]+over || j.State == job.Done && p[2] != 0 {
			rt.Fatalf("job %s, %s: of %s %d are spent and %d granted, the limit is %d and %d were overshot", j.ID, j.State, d, p[1], p[2], p[0], over)
		}
	}
}

func (m *model) checkTouched(rt *rapid.T) {
	if m.touched != nil {
		m.checkJob(rt, m.ledger.Ledger(), m.touched)
		m.checkTree(rt, m.touched.tree)
	}
}

// checkJob compares one job with the model.
func (m *model) checkJob(rt *rapid.T, l store.Ledger, want *modelJob) {
	got, err := l.Job(context.Background(), want.ID)
	if err != nil || got.State != want.State || got.Attempt != want.Attempt || got.CancelReason != want.CancelReason || got.CancelKill != want.CancelKill {
		rt.Fatalf("job %s is %s/%d/%q/%v, want %s/%d/%q/%v: %v", want.ID, got.State, got.Attempt, got.CancelReason, got.CancelKill,
			want.State, want.Attempt, want.CancelReason, want.CancelKill, err)
	}
	if (got.Outcome != nil) != (want.State == job.Done) || got.Outcome != nil && got.Outcome.Status != want.ended {
		rt.Fatalf("job %s has outcome %+v, want %q", want.ID, got.Outcome, want.ended)
	}
}

// check compares all reads with the model.
func (m *model) check(rt *rapid.T) {
	l := m.ledger.Ledger()
	var queued, live []job.ID
	byState := map[job.State]int{}
	for _, id := range m.order {
		want := m.jobs[id]
		byState[want.State]++
		if want.State == job.Queued {
			queued = append(queued, id)
		} else if want.State.Live() {
			live = append(live, id)
		}
		m.checkJob(rt, l, want)
	}
	m.checkLists(rt, l, queued, live, byState)
	for _, t := range m.trees {
		m.checkTree(rt, t)
	}
}

func (m *model) checkLists(rt *rapid.T, l store.Ledger, queued, live []job.ID, byState map[job.State]int) {
	q, err := l.Queued(context.Background())
	var got []job.ID
	for _, item := range q {
		got = append(got, item.ID)
	}
	slices.Sort(queued)
	if err != nil || !slices.Equal(got, queued) {
		rt.Fatalf("queue %v, want %v: %v", got, queued, err)
	}
	u, err := l.Unfinished(context.Background(), Node)
	gotLive := ids(u)
	slices.Sort(gotLive)
	slices.Sort(live)
	if err != nil || !slices.Equal(gotLive, live) && len(live) > 0 {
		rt.Fatalf("unfinished %v, want %v: %v", gotLive, live, err)
	}
	c, err := l.Counts(context.Background())
	if err != nil || c.Total != len(m.order) {
		rt.Fatalf("counts %+v: %v", c, err)
	}
	for s, n := range byState {
		if c.ByState[s] != n {
			rt.Fatalf("counts %+v, want %v", c, byState)
		}
	}
}
