package main

import (
	"context"
	"time"

	"sandboxd/api"
	"sandboxd/internal/budget"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// accounts gives the ledger's budgets the words of the server.
type accounts struct {
	db      store.Trees
	refused func(job.ID) ([]job.Denial, int)
	live    func(job.ID) map[string]int64 // what a job that has not ended has used itself; of a ceiling, its whole subtree
}

func (a accounts) Budget(ctx context.Context, ids []job.ID) (map[job.ID][]api.BudgetLine, error) {
	pots, err := a.db.Pots(ctx, ids...)
	if err != nil {
		return nil, err
	}
	out := map[job.ID][]api.BudgetLine{}
	for id, lines := range pots {
		live := a.live(id)
		for _, l := range lines {
			line := api.BudgetLine{Dimension: l.Dimension, Limit: l.Limit, Spent: l.Spent, Granted: l.Granted}
			if used, ok := live[l.Dimension]; ok && budget.Dim(l.Dimension).Kind() == budget.Ceiling {
				line.Spent = max(line.Spent, used)
			} else {
				line.Spent += used
			}
			if l.Limit != nil {
				left := max(*l.Limit-line.Spent-l.Granted, 0)
				line.Left = &left
			}
			out[id] = append(out[id], line)
		}
	}
	return out, nil
}

// Denials are those of this daemon; all of them are events of the job.
func (a accounts) Denials(_ context.Context, id job.ID) ([]job.Denial, int, error) {
	first, total := a.refused(id)
	return first, total, nil
}

// freezer gives the ledger's freezes the words of the server.
type freezer struct{ db store.Trees }

func (f freezer) Freeze(ctx context.Context, c job.Caller, scope, name string) error {
	return f.db.Freeze(ctx, store.Freeze{Scope: scope, Name: name, By: c.Principal, NowMS: time.Now().UnixMilli()})
}

func (f freezer) Thaw(ctx context.Context, c job.Caller, scope, name string) error {
	return f.db.Thaw(ctx, store.Freeze{Scope: scope, Name: name, By: c.Principal, NowMS: time.Now().UnixMilli()})
}

func (f freezer) Frozen(ctx context.Context) ([]api.Freeze, error) {
	list, err := f.db.Freezes(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]api.Freeze, len(list))
	for i, z := range list {
		out[i] = api.Freeze{Scope: z.Scope, Name: z.Name, By: z.By, Since: z.NowMS}
	}
	return out, nil
}
