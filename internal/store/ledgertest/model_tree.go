package ledgertest

import (
	"context"

	"pgregory.net/rapid"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// modelTree is what the contract says of a tree.
type modelTree struct {
	root       *modelJob
	caps       store.TreeCaps
	inherit    string // "" without budgets
	jobs       []*modelJob
	ever, live int
	paid       map[budget.Dim]int64 // what was given as used by jobs that ended
	inexact    map[budget.Dim]bool  // a whole grant was charged for want of that
}

func (j *modelJob) liveChild() *modelJob {
	for _, c := range j.tree.jobs {
		if c.parent == j && c.State != job.Done {
			return c
		}
	}
	return nil
}

// above is the line from a job to its root.
func (j *modelJob) above() (line []*modelJob) {
	for ; j != nil; j = j.parent {
		line = append(line, j)
	}
	return line
}

var profiles = []string{"default", "builder"}

func (m *model) admit(rt *rapid.T) {
	a := Admission(NewJob(m.t, rapid.Uint32Range(1, 3).Draw(rt, "uid")))
	a.Job.Spec.Profile = rapid.SampledFrom(profiles).Draw(rt, "profile")
	t := &modelTree{paid: map[budget.Dim]int64{}, inexact: map[budget.Dim]bool{}}
	if rapid.Bool().Draw(rt, "capped") {
		t.caps = store.TreeCaps{MaxJobs: rapid.IntRange(1, 8).Draw(rt, "max jobs"), MaxLive: rapid.IntRange(1, 5).Draw(rt, "max live")}
		a.Caps = t.caps
	}
	t.inherit = rapid.SampledFrom([]string{envelope.BudgetShare, envelope.BudgetShare, envelope.BudgetOperator, ""}).Draw(rt, "inherit")
	if t.inherit != "" {
		a.Budget = &store.BudgetAsk{Inherit: t.inherit, Limits: drawLimits(rt)}
	}
	j := &modelJob{Job: a.Job, tree: t}
	t.root = j
	if m.decided(rt, a, j, m.frozenCode(a.Job)) {
		m.trees = append(m.trees, t)
	}
}

func (m *model) child(rt *rapid.T) {
	parent := m.pick(rt)
	if rapid.IntRange(0, 3).Draw(rt, "likely") > 0 {
		parent = m.pickOf(rt, func(j *modelJob) bool { return j.State == job.Running || j.State == job.Waiting })
	}
	a := Admission(NewChild(m.t, parent.Job))
	a.Job.Spec.Profile = rapid.SampledFrom(profiles).Draw(rt, "profile")
	a.Caps = parent.tree.caps
	if parent.budget != nil {
		a.Budget = parent.drawAsk(rt)
	}
	m.decided(rt, a, &modelJob{Job: a.Job, tree: parent.tree, parent: parent}, m.childCode(parent, a))
}

// childCode is the code a child is refused with, "" for none.
func (m *model) childCode(parent *modelJob, a store.Admission) job.Code {
	t := parent.tree
	if code := m.frozenCode(a.Job); code != "" {
		return code
	}
	if parent.State == job.Done {
		return job.CodeConflict
	}
	if t.caps != (store.TreeCaps{}) && (t.ever >= t.caps.MaxJobs || t.live >= t.caps.MaxLive) {
		return job.CodeTreeLimit
	}
	for _, up := range parent.above() {
		if up.State != job.Running && up.State != job.Waiting || up.CancelReason != "" {
			return job.CodeConflict
		}
	}
	if t.inherit == envelope.BudgetShare {
		_, _, code := parent.budget.reserve(a.Budget)
		return code
	}
	return ""
}

// decided admits and compares the decision, and notes the job where it was admitted.
func (m *model) decided(rt *rapid.T, a store.Admission, j *modelJob, code job.Code) bool {
	stored, created, err := m.ledger.Ledger().Admit(context.Background(), a)
	if code != "" {
		if job.CodeOf(err) != code || err == nil {
			rt.Fatalf("admitted: %v; want code %s", err, code)
		}
		return false
	}
	if err != nil || !created {
		rt.Fatalf("admit: %v, %v", created, err)
	}
	m.touched = j
	m.jobs[j.ID], m.order = j, append(m.order, j.ID)
	t := j.tree
	t.jobs, t.ever, t.live = append(t.jobs, j), t.ever+1, t.live+1
	if a.Budget != nil {
		j.grant(rt, a.Budget, stored)
	}
	return true
}

// freeze stops something, or lets go what was stopped.
func (m *model) freeze(rt *rapid.T) {
	ctx, l := context.Background(), m.ledger.Ledger()
	if m.frozen != nil {
		if err := l.Thaw(ctx, *m.frozen); err != nil {
			rt.Fatal(err)
		}
		m.frozen = nil
		return
	}
	f := store.Freeze{Scope: rapid.SampledFrom([]string{store.FreezeAll, store.FreezeProfile, store.FreezeTree}).Draw(rt, "scope"), By: "uid:0", NowMS: Start}
	switch f.Scope {
	case store.FreezeProfile:
		f.Name = rapid.SampledFrom(profiles).Draw(rt, "profile")
	case store.FreezeTree:
		f.Name = string(m.pick(rt).Root)
	}
	if err := l.Freeze(ctx, f); err != nil {
		rt.Fatal(err)
	}
	m.frozen = &f
}

func (m *model) frozenCode(j job.Job) job.Code {
	f := m.frozen
	if f != nil && (f.Scope == store.FreezeAll || f.Scope == store.FreezeProfile && f.Name == j.Spec.Profile || f.Scope == store.FreezeTree && f.Name == string(j.Root)) {
		return job.CodeFrozen
	}
	return ""
}
