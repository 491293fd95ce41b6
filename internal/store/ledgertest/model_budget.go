package ledgertest

import (
	"maps"
	"slices"

	"pgregory.net/rapid"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// modelBudget is what the contract says of a budget, in arithmetic of its own. The numbers of the model stay small.
type modelBudget struct {
	limit   map[budget.Dim]int64 // absent: none
	held    map[budget.Dim]int64 // of the parent's
	spent   map[budget.Dim]int64
	granted map[budget.Dim]int64
	used    map[budget.Dim]int64 // by the job itself, so far
	over    map[budget.Dim]int64 // used beyond a limit, by the job or below
}

func drawLimits(rt *rapid.T) budget.Limits {
	l := budget.Limits{}
	for _, d := range budget.Dims() {
		if n := rapid.SampledFrom([]int64{0, 2, 10, 100, 150}).Draw(rt, string(d)); n > 0 {
			l[d] = n
		}
	}
	return l
}

// drawAsk draws what a child asks, legal or not.
func (j *modelJob) drawAsk(rt *rapid.T) *store.BudgetAsk {
	if j.tree.inherit == envelope.BudgetOperator {
		return &store.BudgetAsk{Inherit: j.tree.inherit, Limits: drawLimits(rt)}
	}
	ask := &store.BudgetAsk{Inherit: j.tree.inherit, Places: rapid.IntRange(0, 3).Draw(rt, "places"), Strict: rapid.IntRange(0, 3).Draw(rt, "strict") == 0}
	for range rapid.IntRange(0, 4).Draw(rt, "named") {
		if ask.Limits == nil {
			ask.Limits = budget.Limits{}
		}
		ask.Limits[rapid.SampledFrom(budget.Dims()).Draw(rt, "dimension")] = rapid.SampledFrom([]int64{1, 2, 5, 20, 60, 1 << 40, 1, 3, 9, 0}).Draw(rt, "amount")
	}
	if rapid.IntRange(0, 3).Draw(rt, "profile binds") == 0 {
		ask.Most = drawLimits(rt)
	}
	ask.OwnUse = map[string]int64{}
	for d, n := range j.budget.used {
		if d.Kind() != budget.Ceiling {
			ask.OwnUse[string(d)] = n
		}
	}
	for _, d := range budget.Dims() {
		if d.Kind() == budget.Ceiling {
			ask.OwnUse[string(d)] = j.total(d)
		}
	}
	return ask
}

func isReserved(d budget.Dim) bool { return d.Kind() == budget.Measured || d.Kind() == budget.Reported }

// reserve says what a child gets of a job's budget, or the code of the first refusal.
func (b *modelBudget) reserve(ask *store.BudgetAsk) (limit map[budget.Dim]int64, clamped []string, code job.Code) {
	limit = map[budget.Dim]int64{}
	for _, d := range budget.Dims() {
		n, ok, cut, c := b.reserveOne(d, ask)
		if code == "" {
			code = c
		}
		if ok {
			limit[d] = n
		}
		if cut {
			clamped = append(clamped, string(d))
		}
	}
	return limit, clamped, code
}

func (b *modelBudget) reserveOne(d budget.Dim, ask *store.BudgetAsk) (n int64, limited, cut bool, code job.Code) {
	named, isNamed := ask.Limits[d]
	most, capped := ask.Most[d]
	total, shared := b.limit[d]
	left := int64(1 << 50)
	if shared {
		left = max(total-b.spent[d]-b.granted[d]-ask.OwnUse[string(d)], 0)
		if d.Kind() == budget.Ceiling {
			left = max(total-max(b.spent[d], ask.OwnUse[string(d)]), 0)
		}
	}
	n = left
	switch {
	case isNamed && named == 0:
		return 0, false, false, job.CodeInvalid
	case isNamed:
		n = min(named, left)
	case !shared && !capped:
		return 0, false, false, ""
	case shared && isReserved(d):
		n = left / int64(max(2, ask.Places+1))
	}
	if capped {
		n = min(n, most)
	}
	cut = isNamed && n < named
	if n == 0 || cut && ask.Strict {
		return 0, false, false, job.CodeBudgetExhausted
	}
	return n, true, cut, ""
}

// grant notes the budget of a job that was admitted, and compares it with the reply.
func (j *modelJob) grant(rt *rapid.T, ask *store.BudgetAsk, stored job.Job) {
	b := &modelBudget{held: map[budget.Dim]int64{}, spent: map[budget.Dim]int64{}, granted: map[budget.Dim]int64{}, used: map[budget.Dim]int64{}, over: map[budget.Dim]int64{}}
	j.budget = b
	var clamped []string
	if p := j.payer(); p == nil {
		b.limit = maps.Clone(map[budget.Dim]int64(ask.Limits))
	} else {
		b.limit, clamped, _ = p.budget.reserve(ask)
		for d, n := range b.limit {
			if _, limited := p.budget.limit[d]; limited && isReserved(d) {
				b.held[d] = n
				p.budget.granted[d] += n
			}
		}
	}
	want := map[string]int64{}
	for d, n := range b.limit {
		want[string(d)] = n
	}
	if !maps.Equal(stored.Grants, want) || !slices.Equal(stored.Clamped, clamped) {
		rt.Fatalf("granted %v, clamped %v; want %v, %v", stored.Grants, stored.Clamped, want, clamped)
	}
	j.Grants, j.Clamped = stored.Grants, stored.Clamped
}

// payer is the job whose budget a job draws from.
func (j *modelJob) payer() *modelJob {
	if j.tree.inherit == envelope.BudgetShare {
		return j.parent
	}
	return nil
}

// use lets a running job use something, as far as it may, or of what is not stopped at the exact amount a little more.
func (m *model) use(rt *rapid.T) {
	j := m.pickOf(rt, func(j *modelJob) bool { return j.started && j.State != job.Done && j.budget != nil })
	d := rapid.SampledFrom(budget.Dims()).Draw(rt, "dimension")
	n := rapid.Int64Range(0, max(j.left(d), 0)).Draw(rt, "amount")
	if isReserved(d) && rapid.IntRange(0, 5).Draw(rt, "careful") == 0 {
		over := rapid.Int64Range(1, 20).Draw(rt, "over")
		n = max(j.left(d), 0) + over
		for p := j; p != nil; p = p.payer() {
			p.budget.over[d] += over
		}
	}
	j.budget.used[d] += n
}

// left is what a job itself may still use: of a ceiling what the whole line has left.
func (j *modelJob) left(d budget.Dim) int64 {
	left := int64(30)
	for p := j; p != nil; p = p.payer() {
		limit, limited := p.budget.limit[d]
		switch {
		case !limited:
		case isReserved(d):
			return limit - p.budget.spent[d] - p.budget.granted[d] - p.budget.used[d]
		case d.Kind() == budget.Ceiling:
			left = min(left, limit-p.total(d))
		}
	}
	return left
}

// total is what a job and all below it have used.
func (j *modelJob) total(d budget.Dim) int64 {
	n := j.budget.spent[d]
	if j.State != job.Done {
		n += j.budget.used[d]
	}
	for _, c := range j.tree.jobs {
		if c.payer() == j && c.State != job.Done {
			n += c.total(d)
		}
	}
	return n
}

// drawReport draws what is known of a job's use at its end.
func (j *modelJob) drawReport(rt *rapid.T, f *store.Finish) {
	if j.budget == nil {
		return
	}
	f.Reported, f.ChargeUnreported = rapid.Bool().Draw(rt, "reported"), rapid.Bool().Draw(rt, "must report")
	f.Measured = map[string]int64{}
	for _, d := range budget.Dims() {
		if rapid.IntRange(0, 9).Draw(rt, "known") > 0 {
			f.Measured[string(d)] = j.budget.used[d]
		}
	}
}

// settle is what the end of a job does to its budget and that of its payer.
func (j *modelJob) settle(f store.Finish) {
	p := j.payer()
	for _, d := range budget.Dims() {
		n := j.spentInTheEnd(d, f)
		j.budget.spent[d] = n
		if p != nil && d != budget.WallMS {
			p.budget.spent[d] += n
			p.budget.granted[d] -= j.budget.held[d]
		}
	}
}

func (j *modelJob) spentInTheEnd(d budget.Dim, f store.Finish) int64 {
	b, t := j.budget, j.tree
	own, known := f.Measured[string(d)]
	if d.Kind() == budget.Reported && !f.Reported {
		known = !f.ChargeUnreported
		own = 0
	}
	switch {
	case !j.started:
		return b.spent[d]
	case known:
		t.paid[d] += own
		return b.spent[d] + own
	case d == budget.WallMS, d.Kind() == budget.Ceiling:
		return b.spent[d]
	}
	t.inexact[d] = true
	return max(b.limit[d], b.spent[d])
}
