package envelope

import (
	"maps"
	"slices"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

// Ask is what a request wants of the amounts, by name ("memory", "timeout", …), in base units (bytes, thousandths of
// a core, milliseconds). A name that is absent inherits.
type Ask map[string]int64

// Root decides the posture of a root job alone: Narrow without anything that is not an amount.
func Root(p Profile, ask Ask) (Envelope, []job.Violation) {
	p.Allows = Bounds{Budget: budget.Limits{}}
	e, refused := Narrow(Above{Profile: &p}, Request{Amounts: ask})
	if len(refused) > 0 {
		bad := make([]job.Violation, len(refused))
		for i, v := range refused {
			bad[i] = v.Violation
		}
		return Envelope{}, bad
	}
	e.Bounds = Bounds{}
	return e, nil
}

// TooSmall lists the amounts that ask for less than makes a working container. More of an operator's goodwill does not
// help them.
func (ask Ask) TooSmall() []job.Violation {
	var bad []job.Violation
	for _, a := range amounts {
		if asked, ok := ask[a.name]; ok && asked < a.min {
			bad = append(bad, job.Violation{Field: a.name, Asked: a.show(asked), Allowed: "at least " + a.show(a.min), Why: "less than the minimum"})
		}
	}
	return bad
}

// unknown lists the names that are no amounts: nothing that was asked is passed over.
func (ask Ask) unknown() []job.Violation {
	var bad []job.Violation
	for _, name := range slices.Sorted(maps.Keys(ask)) {
		if !slices.ContainsFunc(amounts, func(a amount) bool { return a.name == name }) {
			bad = append(bad, job.Violation{Field: short(name), Asked: showCount(ask[name]), Allowed: "no value", Why: "there is no such amount"})
		}
	}
	return bad
}

// span writes what a request may ask for.
func (a amount) span(limit int64) string { return a.show(a.min) + " to " + a.show(limit) }

// Check holds a posture from a config to its bounds: every amount at least its minimum.
func (p Posture) Check() []job.Violation {
	var bad []job.Violation
	for _, a := range amounts {
		if v := *a.at(&p); v < a.min {
			bad = append(bad, job.Violation{Field: a.name, Asked: a.show(v), Allowed: "at least " + a.show(a.min)})
		}
	}
	return bad
}

// Within lists the amounts of p that are larger than those of limit.
func (p Posture) Within(limit Posture) []job.Violation {
	var bad []job.Violation
	for _, a := range amounts {
		if v, l := *a.at(&p), *a.at(&limit); v > l {
			bad = append(bad, job.Violation{Field: a.name, Asked: a.show(v), Allowed: "at most " + a.show(l)})
		}
	}
	return bad
}

// ShrinkTo makes the amounts of p that are larger than those of limit as small as those, but for the ones that stand
// because somebody set them, and returns the names of those it changed.
func (p *Posture) ShrinkTo(limit Posture, stands func(name string) bool) []string {
	var shrunk []string
	for _, a := range amounts {
		if v, l := a.at(p), *a.at(&limit); *v > l && !stands(a.name) {
			*v = l
			shrunk = append(shrunk, a.name)
		}
	}
	return shrunk
}
