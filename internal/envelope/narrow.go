package envelope

import (
	"slices"

	"sandboxd/internal/job"
)

// Above is what stands above a request.
type Above struct {
	// Parent is the envelope of the job that asks; nil where a host user does.
	Parent   *Envelope
	ParentID job.ID
	LeftMS   int64 // what is left of the parent's wall clock
	// Profile is a root's, or the one a child names; nil for a child that names none and inherits its parent's.
	Profile *Profile
	// Limits are the operator's, as the widest profile of all; nil where the profile was held to them already.
	Limits *Profile
	// Project is what the file of the workspace asks: a narrowing between profile and request. Nil: there is none.
	Project *Request
}

// Narrow decides the envelope of a job. For every field: what is not asked is the parent's, or for a root the profile's
// default; where a child names a profile it is the tighter of both, without fault. What is asked and narrower is taken.
// What is wider is refused, with every violation and then no envelope; only amounts that run out (the budget, the wall
// clock) are cut to what there is, unless the request is strict. It is pure and total, and what it returns is within
// the parent, or within the ceiling of a root's profile.
func Narrow(a Above, r Request) (Envelope, []Violation) {
	n := narrowing{above: a, asked: map[string]bool{}, amounts: Ask{}}
	if !n.start() {
		return Envelope{}, n.bad
	}
	n.strict = r.Strict || a.Project != nil && a.Project.Strict
	if a.Project != nil {
		n.layer(*a.Project, FromProject)
	}
	n.layer(r, FromRequest)
	if len(n.bad) == 0 {
		n.compileRisk()
		n.wallClock()
	}
	if len(n.bad) == 0 {
		n.refuse(job.CodeNotSubset, fitTmpfs(&n.e, n.amounts)...)
	}
	if len(n.bad) == 0 {
		n.refuse(job.CodeNotSubset, Subset(n.e, n.tops[0].Envelope)...)
	}
	if len(n.bad) > 0 {
		return Envelope{}, n.bad
	}
	return n.e, nil
}

// narrowing is one envelope in the making.
type narrowing struct {
	above  Above
	strict bool

	e       Envelope
	tops    []ceiling
	asked   map[string]bool // fields that the request or the project names
	amounts Ask             // of those, the amounts
	bad     []Violation
}

// ceiling is one of the envelopes that nothing may exceed, the parent first.
type ceiling struct {
	Envelope
	why string
}

func (n *narrowing) refuse(code job.Code, bad ...job.Violation) {
	for _, v := range bad {
		n.bad = append(n.bad, Violation{v, code})
	}
}

// layer takes what one request asks.
func (n *narrowing) layer(r Request, origin Origin) {
	w := r.read(n.e)
	n.settleImage(&w)
	n.bad = append(n.bad, w.bad...)
	tightened := n.tops[0].Envelope
	for _, f := range fields {
		if !slices.Contains(w.asked, f.name) {
			continue
		}
		n.asked[f.name] = true
		if v, ok := r.Amounts[f.name]; ok {
			n.amounts[f.name] = v
		}
		from := origin
		if n.exceeds(f, &w.Envelope) {
			if !n.runsOut(f) {
				continue
			}
			for i := range n.tops {
				f.tighten(&w.Envelope, &n.tops[i].Envelope)
			}
			from = Clamped
		}
		f.take(&n.e, &w.Envelope)
		f.take(&tightened, &w.Envelope)
		n.e.Origins[f.name] = from
	}
	if origin == FromProject {
		n.tops = append(n.tops, ceiling{tightened, "more than the project's file allows"})
	}
}

// exceeds reports whether an asked value is over a ceiling, and refuses it there unless it only runs out.
func (n *narrowing) exceeds(f field, w *Envelope) bool {
	for i := range n.tops {
		asked, allowed, over := f.over(w, &n.tops[i].Envelope)
		if !over {
			continue
		}
		if !n.runsOut(f) {
			n.refuse(n.codeOf(f), job.Violation{Field: f.name, Asked: asked, Allowed: f.span(allowed, &n.tops[i].Envelope), Why: n.tops[i].why})
		}
		return true
	}
	return false
}

// runsOut reports whether asking for more than there is of the field cuts it instead of refusing it.
func (n *narrowing) runsOut(f field) bool { return f.path == "Budget" && !n.strict }

func (n *narrowing) codeOf(f field) job.Code {
	if f.name == "image" && n.above.Parent == nil {
		return job.CodeImage
	}
	return job.CodeNotSubset
}

// span words what may be asked of an amount from its minimum on.
func (f field) span(allowed string, above *Envelope) string {
	for _, a := range amounts {
		if a.name == f.name {
			return a.span(*a.at(&above.Posture))
		}
	}
	return allowed
}
