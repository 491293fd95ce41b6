package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of one shared transaction, and when the log is moved into the database file.
const (
	maxBatch     = 128
	maxBatchTime = 2 * time.Millisecond
	checkpointAt = 1000 // pages of 4 KiB
)

// writer commits the decisions of many goroutines in shared transactions: it takes what waits, runs each in a
// savepoint of its own, commits once and only then replies. While it waits for the disk the next batch gathers.
//
//	goroutine A ─┐              BEGIN IMMEDIATE
//	goroutine B ─┼─ requests ─▶ SAVEPOINT, A's decision, RELEASE
//	goroutine C ─┘              SAVEPOINT, B's decision, ROLLBACK TO (denied)
//	                            …
//	                            COMMIT (fsync) ─▶ replies to A, B, C
type writer struct {
	conn  *conn
	store *SQLite

	requests chan *request
	ended    chan struct{}

	mu     sync.RWMutex // held for reading while sending, so that stop closes requests with no sender left
	closed bool
}

// request is one decision. state goes from waiting to either taken (by the writer) or withdrawn (by its sender).
type request struct {
	decide func(*tx) error
	state  atomic.Int32
	done   chan error // capacity 1
}

const (
	taken     = 1
	withdrawn = 2
)

func newWriter(c *conn, s *SQLite) *writer {
	w := &writer{conn: c, store: s, requests: make(chan *request, maxBatch), ended: make(chan struct{})}
	go w.run()
	return w
}

// submit waits until the decision is durable or refused.
func (w *writer) submit(ctx context.Context, decide func(*tx) error) error {
	r := &request{decide: decide, done: make(chan error, 1)}
	if err := w.send(ctx, r); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(0, withdrawn) {
			return context.Cause(ctx)
		}
		return <-r.done
	}
}

func (w *writer) send(ctx context.Context, r *request) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	select {
	case w.requests <- r:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop refuses further requests and waits until those accepted are replied to.
func (w *writer) stop() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.requests)
	}
	w.mu.Unlock()
	<-w.ended
}

func (w *writer) run() {
	defer close(w.ended)
	for r := range w.requests {
		w.batch(r)
		w.tendLog()
	}
}
