package budget

import "sync"

// Chain meters one byte dimension of one job and debits all that stand above it: its ancestors, and where they are
// links too, its profile and the operator's limits. A debit looks at all links at once, so the sum of what was allowed
// is never one byte over the limit of any of them, and no byte that a link has left is held back. Safe for concurrent use.
type Chain struct {
	above *Chain
	warn  func(percent int)

	mu      sync.Mutex // a debit holds those of all links, locked from the job upward
	pot     Pot
	limited bool
}

// NewChain adds a link below above, which may be nil for the topmost. pot is nil where the link has no limit of its own.
// warn, where it is not nil, is called without locks, at most once for each share of Pot.Warn.
func NewChain(above *Chain, pot *Pot, warn func(percent int)) *Chain {
	c := &Chain{above: above, warn: warn}
	if pot != nil {
		c.pot, c.limited = *pot, true
	}
	return c
}

// Debit takes up to n bytes out of every link and returns how many may be forwarded or stored: n, what the tightest link
// has left, or 0. A nil chain is a missing one and allows nothing.
func (c *Chain) Debit(n int64) (allowed int64) {
	n = max(n, 0)
	for l := c; l != nil; l = l.above {
		l.mu.Lock()
		if l.limited {
			n = min(n, l.pot.Remaining())
		}
	}
	if c == nil {
		n = 0
	}
	c.finish(n)
	return n
}

// Charge books n bytes that were used already, over the limit if need be, in every link.
func (c *Chain) Charge(n int64) {
	for l := c; l != nil; l = l.above {
		l.mu.Lock()
	}
	c.finish(max(n, 0))
}

// finish spends n in every link, unlocks them all, and then warns.
func (c *Chain) finish(n int64) {
	var warnings []func()
	for l := c; l != nil; {
		l.pot = l.pot.Spend(n)
		if l.limited && n > 0 {
			warnings = append(warnings, l.reachedLocked()...)
		}
		next := l.above
		l.mu.Unlock()
		l = next
	}
	for _, warn := range warnings {
		warn()
	}
}

func (c *Chain) reachedLocked() (out []func()) {
	pot, reached := c.pot.Warn()
	c.pot = pot
	if c.warn == nil {
		return nil
	}
	for _, percent := range reached {
		out = append(out, func() { c.warn(percent) })
	}
	return out
}

// Tighten lowers the limit of this link from now on; a limit that is not lower changes nothing.
func (c *Chain) Tighten(limit int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.limited || limit < c.pot.Limit {
		c.pot.Limit, c.limited = max(limit, 0), true
	}
}

// Pot returns the present state of this link; its Limit means nothing where limited is false.
func (c *Chain) Pot() (pot Pot, limited bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pot, c.limited
}
