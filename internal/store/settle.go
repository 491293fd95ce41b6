package store

import (
	"errors"
	"fmt"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// ErrLiveChildren says that a job cannot end, because jobs below it have not: they are ended first, the deepest first.
var ErrLiveChildren = errors.New("live children")

// use is what is known of a job's own spending when it ends. The zero value is that of a job that never started.
type use struct {
	started          bool
	measured         map[string]int64
	reported         bool // measured holds the agent's authenticated report too
	chargeUnreported bool // without a report the whole grant counts as spent
}

// The state is an expression, so that the index of parents is the one to use.
const queryLiveChildren = `SELECT count(*) FROM jobs WHERE parent = $1 AND parent <> '' AND (state || '') <> 'done'`

// checkNoneBelow refuses to end a job before its children. Since all ends pass here, a child that is done has nobody
// live below it.
func (t *tx) checkNoneBelow(id job.ID) error {
	var n int
	if err := t.row(queryLiveChildren, []any{id}, &n); err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%w: %d of job %s", ErrLiveChildren, n, id)
	}
	return nil
}

// settle closes the budget of a job that ends: what it spent, with all below it, is written down and charged to the
// parent it shares with, and what that holds for it is let go. It runs in the one transaction that moves the job to done.
func (t *tx) settle(s standing, u use) error {
	inherit, err := t.inheritance(s.id)
	if err != nil || inherit == "" {
		return err
	}
	own, err := t.pots(s.id)
	if err != nil {
		return err
	}
	end := u.settlement(own)
	for d, spent := range own.ended(end, u) {
		p := own[d]
		if p.spent == spent {
			continue
		}
		p.spent = spent
		if err := t.setPot(s.id, d, p); err != nil {
			return err
		}
	}
	if inherit != envelope.BudgetShare || s.parent == "" {
		return nil
	}
	return t.charge(s.parent, end)
}

// settlement is what the end changes in the pots of the parent.
func (u use) settlement(own pots) budget.Settlement {
	g, below := budget.Grant{Held: budget.Limits{}}, budget.Amounts{}
	for d, p := range own {
		below[d] = p.spent
		if p.bound.Valid && reserved(d) {
			g.Held[d] = p.bound.Int64 // the whole grant, also where the parent is unlimited and holds nothing for it
		}
	}
	of := budget.Use{Started: u.started, Measured: budget.Amounts{}, Below: below}
	for d, n := range u.measured {
		of.Measured[budget.Dim(d)] = n
	}
	switch {
	case u.reported:
		of.Reported = of.Measured
	case !u.chargeUnreported:
		of.Reported = budget.Amounts{}
		for _, d := range budget.Dims() {
			if d.Kind() == budget.Reported {
				of.Reported[d] = 0
			}
		}
	}
	s := budget.Settle(g, of)
	s.Release = budget.Amounts{}
	for d, p := range own {
		s.Release[d] = p.held
	}
	return s
}

// ended is what the job has spent in the end. Its own wall clock is written down for people; nobody is charged for it.
func (p pots) ended(s budget.Settlement, u use) budget.Amounts {
	out := s.Charge
	if ms, known := u.measured[string(budget.WallMS)]; known && u.started && ms > 0 {
		out = budget.Amounts{budget.WallMS: ms}
		for d, n := range s.Charge {
			out[d] = n
		}
	}
	return out
}

// charge settles with the parent.
func (t *tx) charge(parent job.ID, s budget.Settlement) error {
	rows, err := t.pots(parent)
	if err != nil {
		return err
	}
	for _, d := range budget.Dims() {
		if s.Charge[d] == 0 && s.Release[d] == 0 {
			continue
		}
		p := rows[d]
		one := budget.Pots{d: p.asBudget()}
		one.Settle(s)
		p.spent, p.granted = one[d].Spent, one[d].Granted
		if err := t.setPot(parent, d, p); err != nil {
			return err
		}
	}
	return nil
}
