package server

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// Config holds what a server depends on and its bounds. A bound left 0 gets its default; negative is refused.
type Config struct {
	Jobs    Jobs
	Records Records
	Streams Streams
	Status  Status
	// These may be nil: what they would tell is absent, and freezing is refused.
	Accounts Accounts
	Freezer  Freezer
	Waiter   Waiter

	Log  zerolog.Logger
	Node string // whose unfinished jobs' leases are watched after a restart

	MaxConns     int // open connections on the host socket; default 512
	MaxConnsOne  int // of those, of one user; default half
	MaxConnsJobs int // beside those, of all jobs; default 512, half of them for the jobs of one owner

	HeaderTimeout time.Duration // from the first byte awaited to the end of the header; 5 s
	BodyTimeout   time.Duration // for a JSON body; 10 s
	WriteTimeout  time.Duration // for a reader to take a reply; 30 s
	StallTimeout  time.Duration // for a reader of a stream to take the next piece; 2 min
	IdleTimeout   time.Duration // between two requests; 2 min

	LeaseGrace time.Duration // how long a leased job may be without a connection; 10 s
	LeaseBeat  time.Duration // between two newlines on a lease; 5 s
	PollDone   time.Duration // between two looks at a job awaited, should the hint not come; 5 s
	PollEvents time.Duration // between two looks for events; 500 ms
}

// maxHeader is the bound of a request's header; net/http adds its own slack of 4 KiB.
const maxHeader = 16<<10 - 4<<10

// errClosing is the cause of what ends because the daemon does.
var errClosing = job.Errorf(job.CodeDraining, "", "the daemon is stopping").WithHint("try again when it is back")

// Server answers the API on any number of listeners.
type Server struct {
	cfg    Config
	http   *http.Server
	gate   *gate
	bodies *bodies // of the host's users
	inside *bodies // of jobs, by their owner
	leases *Leases
	stdins claims
	number atomic.Uint64 // of requests, for the log

	resume func() error // watches the leases of before the restart, once

	closing context.Context // ended at Close: replies that go on end cleanly
	close   context.CancelCauseFunc
	base    context.Context // ended when requests are cut off
	cut     context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	active sync.WaitGroup // requests; added to under mu while not closed
}

// New makes a server. It starts nothing.
func New(cfg Config) *Server {
	cfg.setDefaults()
	s := &Server{cfg: cfg, gate: newGate(cfg), bodies: newBodies(bodyBytes), inside: newBodies(bodyBytes / 2)}
	s.leases = NewLeases(cfg.LeaseGrace, s.endLease)
	s.resume = sync.OnceValue(s.resumeLeases)
	s.closing, s.close = context.WithCancelCause(context.Background())
	s.base, s.cut = context.WithCancelCause(context.Background())
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	s.http = &http.Server{
		Handler:           s,
		Protocols:         &protocols,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: cfg.HeaderTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		ErrorLog:          log.New(httpLog{cfg.Log}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return s.base },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateActive {
				c.(*conn).spoke.Store(true)
			}
		},
	}
	return s
}

func (c *Config) setDefaults() {
	preset(&c.MaxConns, 512)
	preset(&c.MaxConnsOne, max(1, c.MaxConns/2))
	preset(&c.MaxConnsJobs, 512)
	preset(&c.HeaderTimeout, 5*time.Second)
	preset(&c.BodyTimeout, 10*time.Second)
	preset(&c.WriteTimeout, 30*time.Second)
	preset(&c.StallTimeout, 2*time.Minute)
	preset(&c.IdleTimeout, 2*time.Minute)
	preset(&c.LeaseGrace, 10*time.Second)
	preset(&c.LeaseBeat, api.LeaseBeat)
	preset(&c.PollDone, 5*time.Second)
	preset(&c.PollEvents, 500*time.Millisecond)
}

func preset[T ~int | ~int64](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

func (c *Config) check() error {
	if c.Jobs == nil || c.Records == nil || c.Streams == nil || c.Status == nil {
		return errors.New("server: a dependency is missing")
	}
	for name, v := range map[string]int64{
		"MaxConns": int64(c.MaxConns), "MaxConnsOne": int64(c.MaxConnsOne), "MaxConnsJobs": int64(c.MaxConnsJobs),
		"HeaderTimeout": int64(c.HeaderTimeout), "BodyTimeout": int64(c.BodyTimeout),
		"WriteTimeout": int64(c.WriteTimeout), "StallTimeout": int64(c.StallTimeout),
		"IdleTimeout": int64(c.IdleTimeout), "LeaseGrace": int64(c.LeaseGrace), "LeaseBeat": int64(c.LeaseBeat),
		"PollDone": int64(c.PollDone), "PollEvents": int64(c.PollEvents),
	} {
		if v < 0 {
			return fmt.Errorf("server: %s is negative", name)
		}
	}
	return nil
}

// Serve answers on a listener whose connections implement Caller, until Close or that of the listener (nil), a fault of
// the listener, or the end of ctx, which cuts requests off on every listener: to end the socket of one job, close it.
// It closes the listener. The grace of leases counts from the first call after a restart.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	err := s.cfg.check()
	if err == nil {
		err = s.resume()
	}
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer context.AfterFunc(ctx, func() { _ = s.cutOff() })()
	if err := s.http.Serve(gated{l, s.gate}); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serving on %s: %w", l.Addr(), err)
	}
	return nil
}

// Close ends the server: no new connections or requests, a clean end for everything that follows or waits, and time
// until ctx ends for the rest; then requests are cut off. Jobs are not touched, and no lease is lost by it.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.close(errClosing)
	s.leases.Close()
	s.gate.close()
	err := s.http.Shutdown(ctx)
	err = errors.Join(err, s.cutOff())
	return errors.Join(err, waitFor(ctx, &s.active, "requests"), waitFor(ctx, &s.gate.told, "refused connections"))
}

// waitFor waits for a group, but not beyond ctx: a handler that is blocked must not keep the daemon from ending.
func waitFor(ctx context.Context, g *sync.WaitGroup, what string) error {
	idle := make(chan struct{})
	go func() { g.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("some %s did not end in time", what)
	}
}

// cutOff ends every request at once.
func (s *Server) cutOff() error {
	s.cut(errClosing)
	return s.http.Close()
}

// begin counts a request in; false once the server is closing.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.active.Add(1)
	}
	return !s.closed
}
