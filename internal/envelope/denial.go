package envelope

import (
	"sandboxd/internal/job"
)

// Denial makes one refusal of all violations, in the words of a request. A single one is its message; several stand
// beside it, and then their code is the one they share, else invalid where a value is malformed, else not_subset.
func Denial(bad []Violation) *job.Error {
	if len(bad) == 0 {
		return nil
	}
	code := bad[0].Code
	for _, v := range bad[1:] {
		switch {
		case v.Code == job.CodeInvalid || code == job.CodeInvalid:
			code = job.CodeInvalid
		case v.Code != code:
			code = job.CodeNotSubset
		}
	}
	out := make([]job.Violation, len(bad))
	for i, v := range bad {
		out[i] = v.Violation
		out[i].Field = RequestName(v.Field)
	}
	e := job.Errorf(code, "", "%d values are not allowed", len(bad))
	if len(bad) == 1 {
		v := out[0]
		e = job.Errorf(code, v.Field, "asked %s, allowed is %s (%s)", v.Asked, v.Allowed, v.Why)
	}
	e.Violations = out
	return e.WithHint("%s", hints[code])
}

var hints = map[job.Code]string{
	job.CodeInvalid:         "0 never means unlimited; leave a value out to inherit it",
	job.CodeNotSubset:       "ask for less, or let the operator widen the profile or [limits]",
	job.CodeImage:           "choose one of them, or let the operator add it to images.allow",
	job.CodeNotInRoster:     "name one of them; 'sbx profiles' shows what each allows",
	job.CodeDepthLimit:      "do the work in this job, or let the operator raise max_depth",
	job.CodeForbidden:       "leave it out",
	job.CodeBudgetExhausted: "ask for less",
}
