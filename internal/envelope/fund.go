package envelope

import (
	"maps"
	"slices"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

// Asks is what a job that Narrow admitted asks of its parent's pots: the dimensions that the request or the project names,
// as far as its envelope goes, and whether it would rather be refused than have them cut. The envelope's own Budget bounds
// the rest: see budget.Pots.ReserveWithin. A root, and a job whose envelope says operator, asks nothing of anybody.
func Asks(e Envelope, a Above, r Request) (ask budget.Limits, strict bool) {
	ask, strict = budget.Limits{}, r.Strict
	if a.Parent == nil || e.BudgetInherit == BudgetOperator {
		return ask, strict
	}
	if a.Project != nil {
		strict = strict || a.Project.Strict
		maps.Copy(ask, a.Project.Budget)
	}
	maps.Copy(ask, r.Budget)
	for d := range ask { // what Narrow cut is asked no more
		if limit, limited := e.Budget.Of(d); limited {
			ask[d] = min(ask[d], limit)
		}
	}
	return ask, strict
}

// Fund decides what a job is granted and writes it into the envelope that Narrow made of the same request: its limits
// are then its grant. pots are those of its parent, places the places its tree has free for children, its own included.
// A refusal names every dimension.
func Fund(e Envelope, a Above, r Request, pots budget.Pots, places int) (Envelope, budget.Grant, *job.Error) {
	if a.Parent == nil || e.BudgetInherit == BudgetOperator {
		pots = budget.Pots{}
	}
	ask, strict := Asks(e, a, r)
	g, err := pots.ReserveWithin(ask, e.Budget, places, strict)
	if err != nil {
		return Envelope{}, budget.Grant{}, asDenial(err)
	}
	e, bad := e.granted(g, a, strict && named(a, r, "timeout"))
	if len(bad) > 0 {
		return Envelope{}, budget.Grant{}, Denial(bad)
	}
	return e, g, nil
}

// granted is the envelope with a grant for its limits, and the timeout that fits it; strictly means that it may not be cut.
func (e Envelope) granted(g budget.Grant, a Above, strictly bool) (Envelope, []Violation) {
	origins := map[string]Origin{}
	maps.Copy(origins, e.Origins)
	e.Budget, e.Origins = g.Limits, origins
	for _, d := range g.Clamped {
		e.Origins[d.Field()] = Clamped
	}
	n := narrowing{above: a, strict: strictly, e: e, asked: map[string]bool{"timeout": strictly}}
	n.wallClock()
	return n.e, n.bad
}

func named(a Above, r Request, amount string) bool {
	_, ok := r.Amounts[amount]
	if a.Project != nil && !ok {
		_, ok = a.Project.Amounts[amount]
	}
	return ok
}

// asDenial puts a refusal of the ledger into the words of a request, with a hint.
func asDenial(err error) *job.Error {
	e, ok := err.(*job.Error)
	if !ok {
		return job.Wrap(job.CodeInternal, err, "reserving the budget")
	}
	e.Violations = slices.Clone(e.Violations)
	for i, v := range e.Violations {
		e.Violations[i].Field = RequestName(v.Field)
	}
	e.Field = RequestName(e.Field)
	if len(e.Violations) > 1 {
		e.Field, e.Message = "", "several budgets do not suffice"
	}
	return e.WithHint("%s", hints[e.Code])
}
