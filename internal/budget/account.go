package budget

import (
	"fmt"
	"maps"
)

// Account is the budget of one job: its pots, and the grants of its children that are not settled yet, by grant id (the
// id of the child). It is what a ledger reads, changes and writes in one transaction; it is not safe for concurrent use.
type Account struct {
	Pots Pots             `json:"pots"`
	Open map[string]Grant `json:"open"`
}

// NewAccount is the account of a job that was granted these limits.
func NewAccount(l Limits) *Account { return &Account{Pots: NewPots(l), Open: map[string]Grant{}} }

// Reserve grants and holds; see Pots.ReserveWithin. An id that is open already is a fault of ours.
func (a *Account) Reserve(id string, ask, most Limits, places int, strict bool) (Grant, error) {
	if _, open := a.Open[id]; open {
		return Grant{}, fmt.Errorf("budget: grant %s is open already", id)
	}
	g, err := a.Pots.ReserveWithin(ask, most, places, strict)
	if err != nil {
		return Grant{}, err
	}
	a.Pots.Hold(g)
	if a.Open == nil {
		a.Open = map[string]Grant{}
	}
	a.Open[id] = g
	return g, nil
}

// Settle closes a grant by its id, exactly once: the second time, and for an id that never was, settled is false and
// nothing changes.
func (a *Account) Settle(id string, u Use) (s Settlement, settled bool) {
	g, open := a.Open[id]
	if !open {
		return Settlement{}, false
	}
	delete(a.Open, id)
	s = Settle(g, u)
	a.Pots.Settle(s)
	return s, true
}

// Spend books what the job itself spent.
func (a *Account) Spend(own Amounts) {
	for d := range a.Pots {
		if n, known := own.of(d); known {
			a.Pots[d] = a.Pots[d].Spend(n)
		}
	}
}

// Clone is a copy that shares nothing.
func (a *Account) Clone() *Account {
	return &Account{Pots: maps.Clone(a.Pots), Open: maps.Clone(a.Open)}
}
