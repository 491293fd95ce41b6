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
	lobbySize    = 64                     // refused connections that are told so in full at a time, of jobs and of others
	lobbyTime    = 250 * time.Millisecond // for a refused client to send its request and read the reply
)

// gate bounds open connections: in all and for each principal, of the host and of jobs apart.
type gate struct {
	max, maxOne, maxJobs int

	mu     sync.Mutex
	closed bool
	open   map[*conn]struct{}
	taken  map[string]int // open connections by the key of a place
	lobby  map[bool]int   // refused connections being told so, of jobs and of others
	told   sync.WaitGroup // goroutines of the lobby; added to under mu
}

// conn is an admitted connection.
type conn struct {
	net.Conn
	caller job.Caller
	meter  *meter      // of the job that asks; nil on the host socket
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

func newGate(cfg Config) *gate {
	return &gate{
		max: cfg.MaxConns, maxOne: cfg.MaxConnsOne, maxJobs: cfg.MaxConnsJobs,
		open: make(map[*conn]struct{}), taken: make(map[string]int), lobby: make(map[bool]int),
	}
}

// enter admits a connection or says why not.
func (g *gate) enter(raw net.Conn, caller job.Caller) (*conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosing
	}
	places := g.places(caller)
	for _, p := range places {
		if g.taken[p.key] >= p.limit {
			return nil, p.full(p.limit)
		}
	}
	c := &conn{Conn: raw, caller: caller}
	if metered, ok := raw.(interface{ requests() *meter }); ok {
		c.meter = metered.requests()
	}
	c.leave = sync.OnceFunc(func() { g.leave(c, places) })
	g.open[c] = struct{}{}
	for _, p := range places {
		g.taken[p.key]++
	}
	return c, nil
}

func (g *gate) leave(c *conn, places []place) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, c)
	for _, p := range places {
		if g.taken[p.key]--; g.taken[p.key] == 0 {
			delete(g.taken, p.key)
		}
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
func (g *gate) refuse(c net.Conn, ofJob bool, why error) {
	_ = c.SetDeadline(time.Now().Add(lobbyTime)) // fails only where the write does
	g.mu.Lock()
	heard := g.lobby[ofJob] < lobbySize && !g.closed
	if heard {
		g.lobby[ofJob]++
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
		g.lobby[ofJob]--
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

// Close ends the listener alone, where it can tell: requests that were taken end in their own way.
func (l gated) Close() error {
	if gentle, ok := l.Listener.(interface{ hush() error }); ok {
		return gentle.hush()
	}
	return l.Listener.Close()
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
		caller := peer.Caller()
		c, err := l.gate.enter(raw, caller)
		if err == nil {
			return c, nil
		}
		l.gate.refuse(raw, caller.Job != "", err)
	}
}
