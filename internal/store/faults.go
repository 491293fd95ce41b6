package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"sandboxd/internal/job"
)

// ErrFenced says that the job is not in the state or attempt a decision was made for: somebody else moved it. The
// decider stops, cleans up and says so.
var ErrFenced = errors.New("fenced")

var errClosed = job.Errorf(job.CodeUnavailable, "", "the state database is closed: the daemon is stopping")

// fault is what an error of SQLite means to us.
type fault int

const (
	notSQLite fault = iota
	retryable       // full or locked: nothing was written, the request may be repeated
	fatal           // what is on the disk can no longer be vouched for: the daemon must stop
	mistake         // everything else: a constraint, a wrong statement
)

// faultOf sorts an error by SQLite's code, never by its text. A failed fsync is fatal, because the kernel forgets the
// pages it could not write and the next fsync would report success.
func faultOf(err error) fault {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return notSQLite
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_FULL, lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return retryable
	case lib.SQLITE_IOERR:
		// The index of the WAL could not grow. It holds nothing durable: a full disk, not a broken one.
		if e.Code() == lib.SQLITE_IOERR_SHMSIZE {
			return retryable
		}
		return fatal
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM:
		return fatal
	}
	return mistake
}

// explain wraps an error with its step, gives a retryable one its code, and raises the alarm for a fatal one.
func (s *SQLite) explain(step string, err error) error {
	if err == nil {
		return nil
	}
	if !s.open.Load() {
		return errClosed
	}
	switch faultOf(err) {
	case retryable:
		return job.Wrap(job.CodeUnavailable, err, "%s: the state database in %s cannot be written now, nothing was changed; "+
			"see that its disk is not full and no other program holds it, then try again", step, s.dir)
	case fatal:
		s.fail(fmt.Errorf("%s: %w", step, err))
		return s.failure()
	}
	return fmt.Errorf("store: %s: %w", step, err)
}

// fail records the first fatal fault; every later write is refused.
func (s *SQLite) fail(err error) {
	if s.failed.CompareAndSwap(nil, &err) {
		s.log.Error().Err(err).Str("dir", s.dir).Msg("the state database failed; stopping")
		s.fatal <- err
	}
}

// failure is the error of every request after a fatal fault, nil before.
func (s *SQLite) failure() error {
	if p := s.failed.Load(); p != nil {
		return job.Wrap(job.CodeInternal, *p, "the state database in %s failed, the daemon stops", s.dir)
	}
	return nil
}
