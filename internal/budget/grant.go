package budget

import (
	"math"

	"sandboxd/internal/job"
)

// Pots are the limited dimensions of one job. An absent dimension has no limit.
type Pots map[Dim]Pot

// NewPots are the fresh pots of a job with these limits.
func NewPots(l Limits) Pots {
	out := Pots{}
	for _, k := range kinds {
		if limit, limited := l.Of(k.dim); limited {
			out[k.dim] = Pot{Limit: limit}
		}
	}
	return out
}

// Grant is what one child was given.
type Grant struct {
	Limits  Limits `json:"limits"`            // the most the child may spend; its own pots begin with them
	Held    Limits `json:"held"`              // of those, what is taken out of its parent's pots until it settles
	Clamped []Dim  `json:"clamped,omitempty"` // where more was asked than was left
}

// Reserve decides a grant against the pots of the parent, which it leaves alone; Hold takes it out. ask has what the
// request names. The refusal names every dimension that cannot be granted.
func (p Pots) Reserve(ask Limits, places int, strict bool) (Grant, error) {
	return p.ReserveWithin(ask, Limits{}, places, strict)
}

// ReserveWithin is Reserve for a child that has limits of its own, whatever it asks: its profile's, say.
func (p Pots) ReserveWithin(ask, most Limits, places int, strict bool) (Grant, error) {
	g := Grant{Limits: Limits{}, Held: Limits{}}
	var bad *job.Error
	refuse := func(err *job.Error) {
		if err != nil && bad != nil {
			bad.Violations = append(bad.Violations, err.Violations...)
		} else if err != nil {
			bad = err
		}
	}
	for _, d := range names(ask) {
		if d.Kind() == 0 {
			refuse(unknown(d))
		}
	}
	for _, k := range kinds {
		refuse(g.take(p, k.dim, ask, most, places, strict))
	}
	if bad != nil {
		return Grant{}, bad
	}
	return g, nil
}

// take decides one dimension.
func (g *Grant) take(p Pots, d Dim, ask, most Limits, places int, strict bool) *job.Error {
	want := Pot{Limit: math.MaxInt64} // where no ancestor is limited, nothing is shared
	pot, shared := p[d]
	if shared {
		want = pot
	}
	n, named := ask[d]
	limit, capped := most.Of(d)
	var clamped bool
	var err *job.Error
	switch {
	case named:
		n, clamped, err = Reserve(d, want, &n, places, strict)
	case shared:
		n, clamped, err = Reserve(d, want, nil, places, strict)
	case capped:
		n = limit
	default:
		return nil
	}
	if err == nil && capped && n > limit {
		n, clamped = limit, named
		if named && strict && limit > 0 {
			err = refused(job.CodeBudgetExhausted, d, d.Show(ask[d]), "at most "+d.Show(limit), "it is what the job may have, and the request is strict")
		}
	}
	if err == nil && n < 1 {
		err = exhausted(d, nil, "the job may have nothing")
	}
	if err != nil {
		return err
	}
	g.Limits[d] = n
	if clamped {
		g.Clamped = append(g.Clamped, d)
	}
	if shared && d.reserved() {
		g.Held[d] = n
	}
	return nil
}

// Hold takes a grant out of the pots. Only the pots of the dimensions in g.Held change, by that amount.
func (p Pots) Hold(g Grant) {
	for d, n := range g.Held {
		if pot, ok := p[d]; ok {
			pot.Granted = add(max(pot.Granted, 0), n)
			p[d] = pot
		}
	}
}
