package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docker/docker/client"
)

// Options of a Docker. A zero takes the default.
type Options struct {
	Host          string        // unix:///path or tcp://host:port; default $DOCKER_HOST, then unix:///var/run/docker.sock
	CallTimeout   time.Duration // of every call that has none below; 30 s
	CreateTimeout time.Duration // 60 s
	StartTimeout  time.Duration // 60 s
	RemoveTimeout time.Duration // 60 s, waiting for a removal already under way included
	ImageTimeout  time.Duration // of a pull, a load or a save from first to last byte; 15 min
}

// Docker is a Docker engine, 20.10 or newer. Safe for concurrent use. Each method ends within its deadline whatever the
// engine does, and fails with an *Error.
type Docker struct {
	opt    Options
	http   *http.Client // constant after Open, as is the next
	pool   *http.Transport
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc

	session atomic.Pointer[session] // nil until the API version is negotiated

	mu     sync.Mutex
	opened bool           // guarded by mu
	closed bool           // guarded by mu
	calls  sync.WaitGroup // running calls; Add under mu while not closed
}

var (
	errClosed  = errors.New("the engine client is closed")
	errNotOpen = errors.New("the engine client is not open")
)

// New sets defaults and starts nothing.
func New(opt Options) *Docker {
	opt.CallTimeout = cmp.Or(opt.CallTimeout, 30*time.Second)
	opt.CreateTimeout = cmp.Or(opt.CreateTimeout, time.Minute)
	opt.StartTimeout = cmp.Or(opt.StartTimeout, time.Minute)
	opt.RemoveTimeout = cmp.Or(opt.RemoveTimeout, time.Minute)
	opt.ImageTimeout = cmp.Or(opt.ImageTimeout, 15*time.Minute)
	d := &Docker{opt: opt}
	d.ctx, d.cancel = context.WithCancelCause(context.Background())
	return d
}

// Open checks the options and the address. It does not connect: the engine may be down now and come later.
func (d *Docker) Open() error {
	for _, t := range []time.Duration{d.opt.CallTimeout, d.opt.CreateTimeout, d.opt.StartTimeout, d.opt.RemoveTimeout, d.opt.ImageTimeout} {
		if t < 0 {
			return fmt.Errorf("engine: a timeout of %v, which is below 0", t)
		}
	}
	d.opt.Host = cmp.Or(d.opt.Host, os.Getenv(client.EnvOverrideHost), client.DefaultDockerHost)
	if err := d.connectLater(); err != nil {
		return fmt.Errorf("engine: host %q: %w", d.opt.Host, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = true
	return nil
}

// Host is the engine's address, for messages.
func (d *Docker) Host() string { return d.opt.Host }

// Close ends running calls and event streams, waits for them, and drops the connections. Streams of ImageSave fail; they
// are still to be closed.
func (d *Docker) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel(errClosed)
	d.calls.Wait()
	if d.pool != nil {
		d.pool.CloseIdleConnections()
	}
	return nil
}

// enter registers a running call; leave must follow.
func (d *Docker) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return errClosed
	case !d.opened:
		return errNotOpen
	}
	d.calls.Add(1)
	return nil
}

// bound derives the context of one call, which ends with ctx, with d and after limit.
func (d *Docker) bound(ctx context.Context, op string, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := d.unbound(ctx)
	ctx, release := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer to %s within %v", op, limit))
	return ctx, func() { release(); end(nil) }
}

// unbound is bound without a deadline.
func (d *Docker) unbound(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.ctx, func() { cancel(errClosed) })
	return ctx, func(cause error) { stop(); cancel(cause) }
}

// call runs fn with a client of the negotiated version under one deadline.
func (d *Docker) call(ctx context.Context, op, ref string, limit time.Duration, fn func(context.Context, *session) error) error {
	if err := d.enter(); err != nil {
		return &Error{Kind: Unavailable, Op: op, Ref: ref, Err: err}
	}
	defer d.calls.Done()
	ctx, release := d.bound(ctx, op, limit)
	defer release()
	return d.run(ctx, op, ref, fn)
}

// run is call without the deadline.
func (d *Docker) run(ctx context.Context, op, ref string, fn func(context.Context, *session) error) error {
	ctx, x := withExchange(ctx)
	s, err := d.negotiated(ctx)
	if err == nil {
		err = fn(ctx, s)
	}
	if err == nil {
		return nil
	}
	e := fail(ctx, op, ref, d.opt.Host, x, err)
	if e.Kind == Unavailable || e.Kind == Invalid {
		// The engine may come back as another version, and then refuse the old one as invalid.
		d.session.CompareAndSwap(s, nil)
	}
	return e
}
