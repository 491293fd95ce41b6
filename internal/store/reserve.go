package store

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// checkBudget refuses what only a fault of ours can produce; what a request names is refused by its reservation.
func checkBudget(a Admission) error {
	b := a.Budget
	switch {
	case b == nil:
		return nil
	case b.Inherit != envelope.BudgetShare && b.Inherit != envelope.BudgetOperator:
		return fmt.Errorf("a budget is inherited by %q or %q, not by %.40q", envelope.BudgetShare, envelope.BudgetOperator, b.Inherit)
	case a.Job.Parent != "" && b.Inherit == envelope.BudgetShare:
		return nil
	case b.Limits == nil:
		return errors.New("the limits of the budget are missing, which never means unlimited")
	}
	for _, v := range b.Limits.Check() {
		return fmt.Errorf("the budget's limit %s = %s is invalid: %s", v.Field, v.Asked, v.Why)
	}
	return nil
}

// given is what never changes of a job's budget, as stored and as shown in its record.
type given struct {
	Grants  map[string]int64 `json:"grants"`
	Clamped []string         `json:"clamped,omitempty"`
}

// reserve decides what the job may spend and, where it shares, takes it out of its parent's pots.
func (a *admissionRow) reserve(t *tx) (err error) {
	above := ""
	if a.Job.Parent != "" {
		if above, err = t.inheritance(a.Job.Parent); err != nil {
			return err
		}
		if (above == "") != (a.Budget == nil) {
			return fmt.Errorf("a child has a budget exactly if its parent %s has one", a.Job.Parent)
		}
	}
	switch ask := a.Budget; {
	case ask == nil:
		return nil
	case above == envelope.BudgetShare && ask.Inherit != envelope.BudgetShare:
		return fmt.Errorf("below job %s, which shares its budget, all share", a.Job.Parent)
	case above != "" && ask.Inherit == envelope.BudgetShare:
		err = a.reserveFrom(t, a.Job.Parent)
	default:
		a.grant = budget.Grant{Limits: maps.Clone(ask.Limits)}
	}
	if err != nil {
		return err
	}
	g := given{Grants: map[string]int64{}}
	for d, n := range a.grant.Limits {
		g.Grants[string(d)] = n
	}
	for _, d := range a.grant.Clamped {
		g.Clamped = append(g.Clamped, string(d))
	}
	a.Job.Grants, a.Job.Clamped = g.Grants, g.Clamped
	a.given, err = encode(g)
	return err
}

// reserveFrom takes the grant out of the parent's pots, as they are less what the parent itself has used.
func (a *admissionRow) reserveFrom(t *tx, parent job.ID) error {
	rows, err := t.pots(parent)
	if err != nil {
		return err
	}
	left := rows.limited()
	for name, n := range a.Budget.OwnUse {
		d := budget.Dim(name)
		p, limited := left[d]
		switch {
		case !limited:
		case d.Kind() == budget.Ceiling:
			p.Spent = max(p.Spent, n)
			left[d] = p
		default:
			left[d] = p.Spend(n)
		}
	}
	most := a.Budget.Most
	if most == nil {
		most = budget.Limits{}
	}
	if a.grant, err = left.ReserveWithin(a.Budget.Limits, most, a.Budget.Places, a.Budget.Strict); err != nil {
		return err
	}
	for d, n := range a.grant.Held {
		p := rows[d]
		p.granted += n // at most the limit: it was granted of what is left
		if err := t.setPot(parent, d, p); err != nil {
			return err
		}
	}
	return nil
}

func (a *admissionRow) insertBudget(t *tx) error {
	if a.Budget == nil {
		return nil
	}
	if _, err := t.exec(`INSERT INTO budgets(job, inherit, given) VALUES ($1, $2, $3)`, a.Job.ID, a.Budget.Inherit, a.given); err != nil {
		return err
	}
	if len(a.grant.Limits) == 0 {
		return nil
	}
	args := []any{a.Job.ID}
	for d, n := range a.grant.Limits {
		args = append(args, d, n, a.grant.Held[d])
	}
	_, err := t.exec(insertPots[len(a.grant.Limits)], args...)
	return err
}

// insertPots are the statements for that many rows. Its length holds for all dimensions.
var insertPots = potRows(len(budget.Dims()))

func potRows(most int) []string {
	texts := make([]string, most+1)
	rows := make([]string, most)
	for n := range rows {
		rows[n] = fmt.Sprintf("($1, $%d, $%d, 0, 0, $%d)", 3*n+2, 3*n+3, 3*n+4)
		texts[n+1] = "INSERT INTO pots(job, dim, bound, spent, granted, held) VALUES " + strings.Join(rows[:n+1], ", ")
	}
	return texts
}

// clamps says what was asked and what was granted, where that is less.
func (a *admissionRow) clamps() string {
	var out []string
	for _, d := range a.grant.Clamped {
		out = append(out, fmt.Sprintf("%s: asked %d, granted %d", d, a.Budget.Limits[d], a.grant.Limits[d]))
	}
	return strings.Join(out, "; ")
}
