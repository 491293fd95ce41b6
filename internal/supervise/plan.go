package supervise

import "sandboxd/internal/wire"

// action is what the time demands of the supervisor.
type action uint8

const (
	actNone action = iota
	actTerm        // TERM, then CONT, to the command's process group
	actKill        // KILL to everything
)

// never is a time that does not come.
const never = int64(1<<63 - 1)

// plan decides when a job must end. It is pure: times are CLOCK_BOOTTIME in nanoseconds and come from the caller. The
// first cause that takes hold stays; whatever comes later can only bring the end nearer.
type plan struct {
	finish     int64 // from TERM to KILL at the deadline
	leaseGrace int64 // from TERM to KILL when the lease has run out

	deadline int64
	lease    int64
	killAt   int64
	cause    string
	termDue  bool
	termSent bool
	killSent bool
}

func newPlan() plan { return plan{deadline: never, lease: never, killAt: never} }

// started sets the deadline from the moment the time counts from.
func (p *plan) started(at int64, m wire.Start) {
	p.finish, p.leaseGrace = m.FinishMS*ms, m.GraceMS*ms
	p.deadline = at + m.TimeoutMS*ms
}

// renewed replaces the lease.
func (p *plan) renewed(now int64, m wire.Lease) { p.lease = now + m.RemainingMS*ms }

// cancelled is an order to end.
func (p *plan) cancelled(now int64, m wire.Cancel) { p.end(now, m.GraceMS*ms, m.Cause) }

// end brings the end to at most grace from now. Without a grace there is no TERM.
func (p *plan) end(now, grace int64, cause string) {
	if p.cause == wire.CauseNone {
		p.cause = cause
	}
	p.killAt = min(p.killAt, now+grace)
	p.termDue = !p.termSent && p.killAt > now
}

// due says what must be done at now, and notes it as done.
func (p *plan) due(now int64) action {
	if now >= p.deadline {
		p.deadline = never
		p.end(now, p.finish, wire.CauseDeadline)
	}
	if now >= p.lease {
		p.lease = never
		p.end(now, p.leaseGrace, wire.CauseLease)
	}
	switch {
	case now >= p.killAt && !p.killSent:
		p.killSent, p.termDue = true, false
		return actKill
	case p.termDue && !p.killSent:
		p.termSent, p.termDue = true, false
		return actTerm
	}
	return actNone
}

// wake is when due must be asked again.
func (p *plan) wake() int64 {
	if p.killSent {
		return never
	}
	return min(p.deadline, p.lease, p.killAt)
}

const ms = int64(1e6)
