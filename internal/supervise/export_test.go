package supervise

import "sandboxd/internal/wire"

// What the tests of the pure parts see.
type (
	Ring   = ring
	Plan   = plan
	Action = action
)

const (
	ActNone     = actNone
	ActTerm     = actTerm
	ActKill     = actKill
	Never       = never
	RingReserve = ringReserve
)

var (
	NewRing = newRing
	NewPlan = newPlan
	Lookup  = lookup
)

func (r *ring) Control(m wire.Message, now int64) error { return r.control(m, now) }
func (r *ring) Reserve() []byte                         { return r.reserve() }
func (r *ring) Commit(stream uint8, n int, now int64)   { r.commit(stream, n, now) }
func (r *ring) Take() []byte                            { return r.take() }
func (r *ring) Wrote()                                  { r.wrote() }
func (r *ring) Ack(seq uint64) error                    { return r.ack(seq) }
func (r *ring) Rewind(seq uint64) error                 { return r.rewind(seq) }
func (r *ring) Close()                                  { r.close() }
func (p *plan) Started(at int64, m wire.Start)          { p.started(at, m) }
func (p *plan) Cancelled(now int64, m wire.Cancel)      { p.cancelled(now, m) }
func (p *plan) Renewed(now int64, m wire.Lease)         { p.renewed(now, m) }
func (p *plan) Due(now int64) action                    { return p.due(now) }
func (p *plan) Wake() int64                             { return p.wake() }
func (p *plan) Cause() string                           { return p.cause }

// HasRoom says whether Reserve would return at once.
func (r *ring) HasRoom() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.areaLocked(wire.HeaderSize+minChunk, ringReserve) != nil
}
