package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"sandboxd/internal/job"
)

// DefaultNode names this node where Options names none.
const DefaultNode = "local"

// Options of a SQLite store.
type Options struct {
	Dir  string // state directory; made with mode 0700 if missing
	Node string // name of this node in rows; default "local"
	Log  zerolog.Logger
	// WholeCheck is the size in bytes up to which the whole database file is checked before Open returns; a larger one is
	// checked in part, and the rest while the daemon works. Default 128 MiB.
	WholeCheck int64
	// Readers is the number of reading connections; default 4.
	Readers int
}

// SQLite is a Ledger and a NodeState on one SQLite file, held by one daemon. It is safe for concurrent use.
//
// Writes of all goroutines pass through one connection and share transactions (see writer). A write that returned
// nil is on the disk. A write whose context ends before it was begun is not done; one that was begun is waited for,
// so that an error of the context always means "nothing was written".
type SQLite struct {
	dir     string
	node    string
	log     zerolog.Logger
	readers int
	whole   int64 // Options.WholeCheck

	lock      *os.File
	write     *writer
	read      *reader
	stopCheck context.CancelFunc
	checked   chan struct{} // closed when nothing checks the file any more

	fatal  chan error // capacity 1
	failed atomic.Pointer[error]
	open   atomic.Bool

	mu      sync.Mutex
	changed chan struct{} // closed and replaced after a commit that wrote events
}

var (
	_ Ledger    = (*SQLite)(nil)
	_ NodeState = (*SQLite)(nil)
)

// New makes a store; Open starts it.
func New(o Options) *SQLite {
	if o.Node == "" {
		o.Node = DefaultNode
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.WholeCheck <= 0 {
		o.WholeCheck = 128 << 20
	}
	return &SQLite{
		dir: o.Dir, node: o.Node, log: o.Log, readers: o.Readers, whole: o.WholeCheck,
		fatal: make(chan error, 1), changed: make(chan struct{}), checked: make(chan struct{}),
	}
}

// Open locks the state directory, checks and migrates the database and starts the writer. Its errors are one line for
// the operator, with what to do. After an error nothing is held.
func (s *SQLite) Open(ctx context.Context) (err error) {
	if s.dir == "" {
		return errors.New("store: no state directory is named")
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return fmt.Errorf("finding the state directory: %w", err)
	}
	if err := prepareDir(s.dir); err != nil {
		return err
	}
	lock, err := lockDir(s.dir)
	if err != nil {
		return err
	}
	path, err := createDB(s.dir)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	conn, rest, err := openWriter(ctx, path, s.whole)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	read, err := openReader(ctx, path, s.readers)
	if err != nil {
		return errors.Join(err, conn.close(), lock.Close())
	}
	s.lock, s.read = lock, read
	s.write = newWriter(conn, s)
	s.open.Store(true)
	s.startCheck(ctx, rest)
	return nil
}

// startCheck checks in the background what was not checked before use.
func (s *SQLite) startCheck(ctx context.Context, rest bool) {
	ctx, s.stopCheck = context.WithCancel(context.WithoutCancel(ctx))
	if !rest {
		close(s.checked)
		return
	}
	go s.checkRest(ctx)
}

// ready returns errClosed before Open and after Close.
func (s *SQLite) ready() error {
	if !s.open.Load() {
		return errClosed
	}
	return nil
}

// Close finishes the writes that were accepted, moves the log into the database file and lets the directory go.
// Later calls return an error with code unavailable.
func (s *SQLite) Close() error {
	if !s.open.CompareAndSwap(true, false) {
		return nil
	}
	s.stopCheck()
	<-s.checked
	s.write.stop()
	errs := []error{s.read.close()}
	if s.failure() == nil {
		errs = append(errs, s.write.conn.checkpoint("TRUNCATE"))
	}
	errs = append(errs, s.write.conn.close(), s.lock.Close())
	return errors.Join(errs...)
}

// Fatal delivers at most one error: the disk or the database failed in a way after which nothing that is written can
// be trusted. Every later write is refused; the daemon stops and leaves its jobs running.
func (s *SQLite) Fatal() <-chan error { return s.fatal }

// Changed returns a channel that is closed after the next commit that wrote events. It is a hint for those who wait:
// take the channel, read, and wait only if the read found nothing.
func (s *SQLite) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *SQLite) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// do runs one decision in a transaction of the writer. What fn leaves in captured variables counts only if do
// returned nil.
func (s *SQLite) do(ctx context.Context, step string, fn func(*tx) error) error {
	if err := s.ready(); err != nil {
		return err
	}
	err := s.write.submit(ctx, fn)
	var refusal *job.Error
	switch {
	case err == nil, errors.As(err, &refusal):
		return err
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("store: %s: a row is missing: %w", step, err)
	}
	return s.explain(step, err)
}
