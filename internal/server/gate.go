package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sandboxd/api"
	"sandboxd/internal/job"
)

const (
	adminReserve = 16                     // connections above the total that only admins get
	lobbySize    = 64                     // refused connections that are told so in full at a time
	lobbyTime    = 250 * time.Millisecond // for a refused client to send its request and read the reply
)

// gate bounds open connections, in all and for each principal.
type gate struct {
	max, maxOne int

	mu     sync.Mutex
	closed bool
	open   map[*conn]struct{}
	one    map[string]int // open connections by principal
	lobby  int
	told   sync.WaitGroup // goroutines of the lobby; added to under mu
}

// conn is an admitted connection.
type conn struct {
	net.Conn
	caller job.Caller
	spoke  atomic.Bool // sent a request
	leave  func()
}

func (c *conn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// CloseWrite lets net/http end a connection without cutting off a reply.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func newGate(limit, limitOne int) *gate {
	return &gate{max: limit, maxOne: limitOne, open: make(map[*conn]struct{}), one: make(map[string]int)}
}

// enter admits a connection or says why not.
func (g *gate) enter(raw net.Conn, caller job.Caller) (*conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	limit := g.max
	if caller.Admin {
		limit += adminReserve
	}
	switch {
	case g.closed:
		return nil, errClosing
	case g.one[caller.Principal] >= g.maxOne:
		return nil, job.Errorf(job.CodeQuota, "", "you have %d connections open, as many as one user may", g.maxOne).
			WithHint("close some, or try again in a moment")
	case len(g.open) >= limit:
		return nil, job.Errorf(job.CodeUnavailable, "", "the daemon has %d connections open, as many as it takes", g.max).
			WithHint("try again in a moment")
	}
	c := &conn{Conn: raw, caller: caller}
	c.leave = sync.OnceFunc(func() { g.leave(c) })
	g.open[c] = struct{}{}
	g.one[caller.Principal]++
	return c, nil
}

func (g *gate) leave(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, c)
	if g.one[c.caller.Principal]--; g.one[c.caller.Principal] == 0 {
		delete(g.one, c.caller.Principal)
	}
}

// count is the number of open connections.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open)
}

// close admits nothing more and ends the connections that never sent a request: they would hold up a shutdown.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	var silent []*conn
	for c := range g.open {
		if !c.spoke.Load() {
			silent = append(silent, c)
		}
	}
	g.mu.Unlock()
	for _, c := range silent {
		_ = c.Close() // nothing was asked on it
	}
}

// refuse answers a connection that was not admitted. Up to lobbySize at a time are heard first: a client that gets its
// reply before it has asked takes it for a fault. Beyond that they get it if they look.
func (g *gate) refuse(c net.Conn, why error) {
	_ = c.SetDeadline(time.Now().Add(lobbyTime)) // fails only where the write does
	g.mu.Lock()
	heard := g.lobby < lobbySize && !g.closed
	if heard {
		g.lobby++
		g.told.Add(1)
	}
	g.mu.Unlock()
	if !heard {
		_, _ = c.Write(refusal(why)) // fits a fresh socket's buffer, so nobody waits
		_ = c.Close()
		return
	}
	go func() {
		defer g.told.Done()
		if n, _ := c.Read(make([]byte, 4<<10)); n > 0 {
			_, _ = c.Write(refusal(why))
			_ = closeWrite(c)
			_, _ = io.CopyN(io.Discard, c, 64<<10)
		}
		_ = c.Close()
		g.mu.Lock()
		g.lobby--
		g.mu.Unlock()
	}()
}

func refusal(why error) []byte {
	p := problemOf(why, 0)
	body, _ := marshal(p) // plain strings and numbers
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\nRetry-After: 1\r\n\r\n",
		p.Status, http.StatusText(p.Status), api.ProblemType, len(body))
	b.Write(body)
	return b.Bytes()
}

// gated is a listener behind the gate. Its connections must know their caller.
type gated struct {
	net.Listener
	gate *gate
}

// Caller is implemented by connections of a listener the server can serve.
type Caller interface{ Caller() job.Caller }

func (l gated) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, ok := raw.(Caller)
		if !ok {
			_ = raw.Close()
			return nil, fmt.Errorf("accepting on %s: a connection that does not know its caller", l.Addr())
		}
		c, err := l.gate.enter(raw, peer.Caller())
		if err == nil {
			return c, nil
		}
		l.gate.refuse(raw, err)
	}
}
