package budget

import (
	"math/bits"

	"sandboxd/internal/job"
)

// Pot is one limited dimension of one job. What no number of a sound ledger could be (a negative one) counts as 0 and
// never gives more than the limit.
type Pot struct {
	Limit   int64 `json:"limit"`
	Spent   int64 `json:"spent"`   // by the job and its settled children, overshoot included
	Granted int64 `json:"granted"` // held by children that are not settled yet
	Warned  int   `json:"warned"`  // the highest share in percent that was warned of
}

// Remaining is limit − spent − granted, never below 0.
func (p Pot) Remaining() int64 {
	return max(add(max(p.Limit, 0), -add(max(p.Spent, 0), max(p.Granted, 0))), 0)
}

// Spend returns the pot with n more spent. A negative n is nothing.
func (p Pot) Spend(n int64) Pot {
	p.Spent = add(max(p.Spent, 0), max(n, 0))
	return p
}

// warnAt are the shares in percent at which a job is warned.
var warnAt = []int{50, 75, 90}

// Warn returns the shares in percent that are reached and were not warned of before, each exactly once.
func (p Pot) Warn() (Pot, []int) {
	var reached []int
	for _, percent := range warnAt {
		if percent > p.Warned && p.Spent > 0 && shareReached(p.Spent, p.Limit, percent) {
			reached = append(reached, percent)
			p.Warned = percent
		}
	}
	return p, reached
}

// shareReached compares spent × 100 with limit × percent in 128 bits.
func shareReached(spent, limit int64, percent int) bool {
	hi, lo := bits.Mul64(uint64(spent), 100)
	wantHi, wantLo := bits.Mul64(uint64(max(limit, 0)), uint64(percent))
	return hi > wantHi || hi == wantHi && lo >= wantLo
}

// Reserve decides what one child gets of a pot. ask is nil where the request names no amount; places are the places a
// tree has free for children, that of this child included. A deadline and a ceiling are given whole; of what is reserved,
// an unnamed amount is the share that leaves room for siblings and the parent's own end. More than what remains is clamped
// to it, or refused where strict. Nothing left is a refusal with code budget_exhausted that names the dimension.
func Reserve(d Dim, p Pot, ask *int64, places int, strict bool) (grant int64, clamped bool, err *job.Error) {
	left := p.Remaining()
	switch {
	case d.Kind() == 0:
		return 0, false, unknown(d)
	case ask != nil && *ask < 1:
		return 0, false, refused(job.CodeInvalid, d, d.Show(*ask), "at least "+d.Show(1), "0 never means unlimited")
	case left == 0:
		return 0, false, exhausted(d, ask, "nothing is left")
	case ask != nil && *ask > left && strict:
		return 0, false, refused(job.CodeBudgetExhausted, d, d.Show(*ask), "at most "+d.Show(left), "it is what is left, and the request is strict")
	case ask != nil:
		return min(*ask, left), *ask > left, nil
	case !d.reserved():
		return left, false, nil
	}
	if grant = left / share(places); grant == 0 {
		return 0, false, exhausted(d, ask, "what is left cannot be shared among those who may still come; name an amount")
	}
	return grant, false, nil
}

// share is max(2, places + 1).
func share(places int) int64 { return max(add(int64(places), 1), 2) }

func exhausted(d Dim, ask *int64, why string) *job.Error {
	asked := "a share"
	if ask != nil {
		asked = d.Show(*ask)
	}
	return refused(job.CodeBudgetExhausted, d, asked, d.Show(0), why)
}

func refused(code job.Code, d Dim, asked, allowed, why string) *job.Error {
	e := job.Errorf(code, d.Field(), "asked %s, allowed is %s (%s)", asked, allowed, why)
	e.Violations = []job.Violation{{Field: d.Field(), Asked: asked, Allowed: allowed, Why: why}}
	return e
}
