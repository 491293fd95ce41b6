package envelope

import (
	"maps"
	"strings"

	"sandboxd/internal/budget"
)

// most is the limit of one dimension, or that it has none.
type most struct {
	n       int64
	limited bool
}

func budgetOrder(d budget.Dim) order[most] {
	show := func(m most) string {
		if !m.limited {
			return "no limit"
		}
		return d.Show(m.n)
	}
	return order[most]{
		within: func(child, above most) bool { return !above.limited || child.limited && child.n <= above.n },
		meet: func(a, b most) most {
			if !a.limited || b.limited && b.n < a.n {
				return b
			}
			return a
		},
		show: show,
		say:  func(child, above most) (string, string) { return show(child), "at most " + show(above) },
	}
}

// budgetFields are the lines of the dimensions. A request names spans of time without their unit.
func budgetFields() []field {
	var out []field
	for _, d := range budget.Dims() {
		out = append(out, within(d.Field(), "Budget", strings.TrimSuffix(d.Field(), "_ms"),
			func(e *Envelope) most { n, limited := e.Budget.Of(d); return most{n, limited} },
			func(e *Envelope, m most) { e.Budget = withLimit(e.Budget, d, m) }, budgetOrder(d)))
	}
	return out
}

// withLimit is a copy of l with one dimension changed. Missing limits become a 0 in all others.
func withLimit(l budget.Limits, d budget.Dim, m most) budget.Limits {
	if n, limited := l.Of(d); n == m.n && limited == m.limited {
		return l
	}
	out := maps.Clone(l)
	if out == nil {
		out = budget.Limits{}
		for _, other := range budget.Dims() {
			out[other] = 0
		}
	}
	if m.limited {
		out[d] = m.n
	} else {
		delete(out, d)
	}
	return out
}
