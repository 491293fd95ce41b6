package budget_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sandboxd/internal/budget"
)

// tree drives accounts as a ledger would: a child's account begins with its grant, and what a child spent is charged to
// its parent when it ends, children first.
type tree struct {
	jobs  []*member
	over  map[budget.Dim]int64 // how much was measured or reported beyond what a job had left
	ended map[string]int       // settlements by grant
}

type member struct {
	id      string
	parent  *member
	account *budget.Account
	own     budget.Amounts
	done    bool
	open    int
}

func limits(t *rapid.T, label string, most int64) budget.Limits {
	l := budget.Limits{}
	for _, d := range budget.Dims() {
		if rapid.Bool().Draw(t, label+" has "+string(d)) {
			l[d] = rapid.Int64Range(1, most).Draw(t, label+" "+string(d))
		}
	}
	return l
}

func (w *tree) reserve(t *rapid.T) {
	p := rapid.SampledFrom(w.jobs).Draw(t, "parent")
	if p.done || len(w.jobs) > 12 {
		t.Skip()
	}
	before := p.account.Clone()
	id := fmt.Sprint("c", len(w.jobs))
	ask := limits(t, "ask", 200)
	strict := rapid.Bool().Draw(t, "strict")
	most := limits(t, "most", 300)
	g, err := p.account.Reserve(id, ask, most, rapid.IntRange(0, 8).Draw(t, "places"), strict)
	if err != nil {
		if !cmp.Equal(before, p.account) {
			t.Fatal("a refusal changed the account")
		}
		return
	}
	for d, limit := range most {
		if g.Limits[d] < 1 || g.Limits[d] > limit {
			t.Fatalf("%s: granted %d, at most %d", d, g.Limits[d], limit)
		}
	}
	for d, pot := range before.Pots {
		if g.Limits[d] < 1 || g.Limits[d] > pot.Remaining() {
			t.Fatalf("%s: granted %d of %+v", d, g.Limits[d], pot)
		}
		if asked, ok := ask[d]; ok && strict && g.Limits[d] != asked {
			t.Fatalf("%s: strict, asked %d, got %d", d, asked, g.Limits[d])
		}
	}
	w.jobs = append(w.jobs, &member{id: id, parent: p, account: budget.NewAccount(g.Limits), own: budget.Amounts{}})
	p.open++
}

// spend is what a job uses; a limited dimension is overshot at times, as a cpu budget is that is polled.
func (w *tree) spend(t *rapid.T) {
	m := rapid.SampledFrom(w.jobs).Draw(t, "spender")
	if m.done {
		t.Skip()
	}
	d := rapid.SampledFrom(budget.Dims()).Draw(t, "dim")
	if d.Kind() == budget.Shared || d.Kind() == budget.Ceiling {
		t.Skip() // those are the business of a deadline and of a chain
	}
	n := rapid.Int64Range(0, 60).Draw(t, "n")
	if pot, limited := m.account.Pots[d]; limited && n > pot.Remaining() {
		if !rapid.Bool().Draw(t, "overshoots") {
			n = pot.Remaining()
		}
		w.over[d] += n - min(n, pot.Remaining())
	}
	m.own[d] += n
	m.account.Spend(budget.Amounts{d: n})
}

func (w *tree) settle(t *rapid.T) {
	m := rapid.SampledFrom(w.jobs).Draw(t, "ended")
	if m.parent == nil || m.done || m.open > 0 {
		t.Skip()
	}
	use := budget.Use{Started: rapid.Bool().Draw(t, "started") || len(m.own) > 0, Measured: budget.Amounts{}, Below: budget.Amounts{}}
	for d, pot := range m.account.Pots {
		use.Below[d] = pot.Spent - m.own[d]
		if use.Below[d] > 0 {
			use.Started = true
		}
	}
	for _, d := range budget.Dims() {
		if d.Kind() == budget.Measured {
			use.Measured[d] = m.own[d]
		}
	}
	if rapid.Bool().Draw(t, "reports") {
		use.Reported = m.own
	}
	for range rapid.IntRange(1, 3).Draw(t, "times") {
		if _, ok := m.parent.account.Settle(m.id, use); ok {
			w.ended[m.id]++
		}
	}
	m.done = true
	m.parent.open--
}

func (w *tree) check(t *rapid.T) {
	for _, m := range w.jobs {
		for d, pot := range m.account.Pots {
			var held int64
			for _, g := range m.account.Open {
				held += g.Held[d]
			}
			if held != pot.Granted || pot.Spent < 0 || pot.Granted < 0 {
				t.Fatalf("%s %s: %+v, held %d", m.id, d, pot, held)
			}
			if pot.Spent+pot.Granted > pot.Limit+w.over[d] {
				t.Fatalf("%s %s: %+v is over, %d of it measured beyond", m.id, d, pot, w.over[d])
			}
		}
		if m.parent != nil && m.done != (w.ended[m.id] == 1) {
			t.Fatalf("%s settled %d times", m.id, w.ended[m.id])
		}
	}
}

func TestNothingIsGrantedTwiceUnderAnyInterleaving(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := &member{id: "root", account: budget.NewAccount(limits(t, "root", 1000)), own: budget.Amounts{}}
		w := &tree{jobs: []*member{root}, over: map[budget.Dim]int64{}, ended: map[string]int{}}
		t.Repeat(map[string]func(*rapid.T){"reserve": w.reserve, "spend": w.spend, "settle": w.settle, "": w.check})
	})
}

func TestAReservationIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pot := budget.Pot{Limit: rapid.Int64().Draw(t, "limit"), Spent: rapid.Int64().Draw(t, "spent"), Granted: rapid.Int64().Draw(t, "granted")}
		var ask *int64
		if rapid.Bool().Draw(t, "named") {
			ask = new(rapid.Int64().Draw(t, "ask"))
		}
		d := rapid.SampledFrom(budget.Dims()).Draw(t, "dim")
		n, clamped, err := budget.Reserve(d, pot, ask, rapid.Int().Draw(t, "places"), rapid.Bool().Draw(t, "strict"))
		switch {
		case err != nil && (n != 0 || clamped || err.Field != d.Field()):
			t.Fatalf("%d beside %v", n, err)
		case err == nil && (n < 1 || n > pot.Remaining() || n > max(pot.Limit, 0)):
			t.Fatalf("granted %d of %+v", n, pot)
		case err == nil && ask != nil && (n > *ask || clamped != (n < *ask)):
			t.Fatalf("asked %d, granted %d, clamped %v", *ask, n, clamped)
		}
	})
}
