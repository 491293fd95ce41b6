package supervise

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"sandboxd/internal/wire"
)

const (
	backoffLeast = 50 * time.Millisecond
	backoffMost  = 2 * time.Second
	// handshakeTime bounds a handshake. The daemon allows less; this is for one that does not answer at all.
	handshakeTime = 5 * time.Second
)

// link keeps init connected to the daemon: one connection at a time, resumed on the same path whenever it is lost.
// Whatever the daemon does wrong costs that connection and no more.
type link struct {
	socket string
	ring   *ring
	stdin  *stdin

	orders  chan wire.Message // to the supervisor: start, signal, cancel, lease, end
	changes chan bool         // to the supervisor: connected or not

	// Of the goroutine that runs the link.
	id      wire.Identity
	started bool // a start message was passed on
}

func newLink(socket string, r *ring, s *stdin) *link {
	return &link{socket: socket, ring: r, stdin: s, orders: make(chan wire.Message), changes: make(chan bool)}
}

// first makes the first connection, on which init gets its key, and tries until ctx ends.
func (l *link) first(ctx context.Context, slot string) (*wire.Conn, error) {
	for pause := backoffLeast; ; pause = min(2*pause, backoffMost) {
		c, err := l.dial()
		if err == nil {
			if l.id, err = wire.ConnectFresh(c, slot); err == nil {
				return c, c.SetDeadline(time.Time{})
			}
			c.Close()
		}
		if !sleep(ctx, pause) {
			return nil, fmt.Errorf("connect to %s: %w", l.socket, err)
		}
	}
}

func (l *link) dial() (*wire.Conn, error) {
	nc, err := net.DialTimeout("unix", l.socket, handshakeTime)
	if err != nil {
		return nil, err
	}
	c := wire.NewConn(nc, wire.SideInit)
	return c, c.SetDeadline(time.Now().Add(handshakeTime))
}

// run serves the first connection and all after it until ctx ends.
func (l *link) run(ctx context.Context, c *wire.Conn) {
	pause := backoffLeast
	for {
		if c != nil {
			pause = backoffLeast
			l.serve(ctx, c)
		}
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, backoffMost)
		c = l.resume()
	}
}

// resume makes a new connection and winds the ring back to what the daemon holds; nil when it did not work.
func (l *link) resume() *wire.Conn {
	c, err := l.dial()
	if err != nil {
		return nil
	}
	held := wire.Held{Started: l.started}
	held.StdinGot, held.StdinEOF = l.stdin.resumed()
	epoch, last, err := wire.ConnectResume(c, l.id, held)
	if err == nil {
		err = errors.Join(l.ring.rewind(last), c.SetDeadline(time.Time{}))
	}
	if err != nil {
		c.Close()
		return nil
	}
	l.id.Epoch = epoch
	return c
}

// serve reads orders and sends frames until the connection ends or ctx does. When it returns nothing of it runs.
func (l *link) serve(ctx context.Context, c *wire.Conn) {
	over, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { <-over.Done(); c.Close() })
	wg.Go(func() { send(over, c, l.ring, l.stdin); cancel() })
	defer wg.Wait()
	defer cancel()
	l.tell(ctx, true)
	for {
		f, err := c.Next()
		if err != nil || l.take(ctx, f) != nil {
			break
		}
	}
	cancel()
	wg.Wait()
	l.tell(ctx, false)
}

func (l *link) tell(ctx context.Context, connected bool) {
	select {
	case l.changes <- connected:
	case <-ctx.Done():
	}
}

// take does what needs no decision itself and passes every other order on.
func (l *link) take(ctx context.Context, f wire.Frame) error {
	switch f.Type {
	case wire.TypeAck:
		m, err := wire.Decode[wire.Ack](f)
		if err != nil {
			return err
		}
		return l.ring.ack(m.Seq)
	case wire.TypeStdin:
		return l.stdin.feed(f.Payload)
	}
	m, err := order(f)
	if err != nil {
		return err
	}
	if start, ok := m.(wire.Start); ok {
		if l.started {
			return wire.ErrOrder
		}
		l.started = true
		if start.Stdin {
			l.stdin.expect() // before the next frame is read
		}
	}
	select {
	case l.orders <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func order(f wire.Frame) (wire.Message, error) {
	switch f.Type {
	case wire.TypeStart:
		return wire.Decode[wire.Start](f)
	case wire.TypeSignal:
		return wire.Decode[wire.Signal](f)
	case wire.TypeCancel:
		return wire.Decode[wire.Cancel](f)
	case wire.TypeLease:
		return wire.Decode[wire.Lease](f)
	case wire.TypeEnd:
		return wire.Decode[wire.End](f)
	}
	return nil, wire.ErrOrder // line: not built yet
}

// send writes kept frames as they come, credits and heartbeats. It is the only sender of its connection.
func send(ctx context.Context, c *wire.Conn, r *ring, s *stdin) {
	beat := time.NewTicker(wire.HeartbeatEvery)
	defer beat.Stop()
	for {
		batch := r.take()
		if batch != nil {
			err := c.WriteEncoded(batch)
			r.wrote()
			if err != nil {
				return
			}
		}
		if m, due := s.credit(); due && c.Send(m) != nil {
			return
		}
		idle := r.wake
		if batch != nil { // do not wait, but do not starve the heartbeat either
			idle = ready
		}
		select {
		case <-idle:
		case <-beat.C:
			if c.Send(wire.Heartbeat{}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// ready is always ready to receive from.
var ready = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// sleep reports whether the time passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
