package budget

// Use is what is known of a job's spending when it has ended.
type Use struct {
	Started  bool    // a command was handed over; what never started spent nothing
	Measured Amounts // by the daemon, of the job alone
	Reported Amounts // by the agent's authenticated report, of the job alone; nil: none came
	Below    Amounts // by its settled children, their descendants included
}

// Settlement is what the end of a job changes in the pots of its parent, in every dimension that is known.
type Settlement struct {
	Charge  Amounts `json:"charge"`  // more is spent
	Release Amounts `json:"release"` // less is granted
}

// Settle closes a grant. What was measured is charged as it is, overshoot included; what is only reported is charged as
// the report says, and with the whole grant where none came or it leaves the dimension out; the same holds where a
// measurement that was reserved for is missing. What its children spent counts as its own. The whole hold is released,
// so that the rest is the parent's again. The caller sees to it that a grant settles once; Account does.
func Settle(g Grant, u Use) Settlement {
	s := Settlement{Charge: Amounts{}, Release: Amounts{}}
	for _, k := range kinds {
		held := max(g.Held[k.dim], 0)
		if held > 0 {
			s.Release[k.dim] = held
		}
		if n, known := charge(k.dim, k.kind, held, u); known {
			s.Charge[k.dim] = n
		}
	}
	return s
}

func charge(d Dim, kind Kind, held int64, u Use) (n int64, known bool) {
	below, some := u.Below.of(d)
	if !some {
		below = 0
	}
	if kind == Shared {
		return 0, false
	}
	if !u.Started {
		return below, some
	}
	own := u.Measured
	if kind == Reported {
		own = u.Reported
	}
	if n, known := own.of(d); known {
		return add(n, below), true
	}
	if kind == Ceiling { // debited along the chain when it was used
		return below, some
	}
	return max(held, below), some || held > 0
}

// Settle applies a settlement.
func (p Pots) Settle(s Settlement) {
	for d, pot := range p {
		pot.Granted = max(add(max(pot.Granted, 0), -max(s.Release[d], 0)), 0)
		p[d] = pot.Spend(s.Charge[d])
	}
}
