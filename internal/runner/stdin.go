package runner

import (
	"context"
	"errors"
	"io"
	"sync"

	"sandboxd/internal/job"
	"sandboxd/internal/wire"
)

// errStdinClosed says that the command or the job has ended its reading.
var errStdinClosed = errors.New("the job reads its standard input no more")

// stdin carries bytes to the command within the window that init's credits allow. What was sent and not yet taken off
// init's hands is kept, so that it can be sent again after a lost connection.
type stdin struct {
	mu     sync.Mutex
	cond   *sync.Cond
	conn   *wire.Conn // nil until the job runs and while the connection is lost
	kept   []byte     // bytes [taken, sent)
	taken  uint64
	sent   uint64
	eof    bool // the end was sent, or is to be sent after a reconnect
	opened bool
	closed bool // the command reads no more, or the job is over
}

func newStdin() *stdin {
	s := &stdin{}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// attach gives stdin a connection. The first one starts with the bytes of the request.
func (s *stdin) attach(c *wire.Conn, spec job.Spec, held wire.Held) {
	if spec.Stdin == job.StdinNone {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.conn == nil && s.sent == 0 && !s.eof
	s.conn = c
	if first && spec.Stdin == job.StdinBytes {
		s.opened = true
		s.kept, s.sent, s.eof = spec.StdinData, uint64(len(spec.StdinData)), true
	}
	s.resendLocked(held)
	s.cond.Broadcast()
}

// resendLocked sends what init has not got. The request's bytes are at most one window.
func (s *stdin) resendLocked(held wire.Held) {
	if held.StdinGot < s.taken || held.StdinGot > s.sent {
		// An earlier daemon fed this job and its feeder is gone with it.
		s.eof, s.kept, s.taken, s.sent = true, nil, held.StdinGot, held.StdinGot
	}
	for rest := s.kept[held.StdinGot-s.taken:]; len(rest) > 0; {
		n := min(len(rest), wire.MaxPayload)
		if s.sendLocked(rest[:n]) != nil {
			return
		}
		rest = rest[n:]
	}
	if s.eof && !held.StdinEOF {
		_ = s.sendLocked(nil)
	}
}

func (s *stdin) sendLocked(p []byte) error {
	conn := s.conn
	return within(conn, func() error { return conn.SendBytes(wire.TypeStdin, wire.StreamNone, p) })
}

// credit notes how much is off init's hands.
func (s *stdin) credit(total uint64, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if total > s.taken && total <= s.sent {
		s.kept = s.kept[total-s.taken:]
		s.taken = total
	}
	s.closed = s.closed || closed
	s.cond.Broadcast()
}

// end wakes a feeder for good.
func (s *stdin) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.cond.Broadcast()
}

// open waits until the job runs and gives its stdin to one feeder.
func (s *stdin) open(ctx context.Context) (io.WriteCloser, error) {
	unhook := context.AfterFunc(ctx, func() { s.mu.Lock(); s.cond.Broadcast(); s.mu.Unlock() })
	defer unhook()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.conn == nil && !s.closed && ctx.Err() == nil {
		s.cond.Wait()
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case s.closed:
		return nil, job.Errorf(job.CodeConflict, "stdin", "the job has ended")
	case s.opened:
		return nil, job.Errorf(job.CodeConflict, "stdin", "the job's standard input is fed already")
	}
	s.opened = true
	f := &feeder{s: s, ctx: ctx}
	// A feeder that goes away without Close leaves the place to another, who goes on with the bytes after the last.
	f.unhook = context.AfterFunc(ctx, f.release)
	return f, nil
}

// feeder is the one writer of a job's stdin.
type feeder struct {
	s      *stdin
	ctx    context.Context
	unhook func() bool
}

func (f *feeder) release() {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if !f.s.eof {
		f.s.opened = false
	}
	f.s.cond.Broadcast()
}

// Write blocks while the command does not read. It fails when the command reads no more.
func (f *feeder) Write(p []byte) (int, error) {
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	done := 0
	for done < len(p) {
		room := wire.StdinWindow - int(s.sent-s.taken)
		switch {
		case s.closed || s.eof:
			return done, errStdinClosed
		case f.ctx.Err() != nil:
			return done, f.ctx.Err()
		case room <= 0 || s.conn == nil:
			s.cond.Wait()
			continue
		}
		part := p[done:min(done+min(room, wire.MaxPayload), len(p))]
		s.kept = append(s.kept, part...)
		s.sent += uint64(len(part))
		done += len(part)
		// A failed send is made good by the reconnect, from what is kept.
		_ = s.sendLocked(part)
	}
	return done, nil
}

// Close sends the end of input.
func (f *feeder) Close() error {
	f.unhook()
	s := f.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.eof || s.closed {
		return nil
	}
	s.eof = true
	if s.conn != nil {
		_ = s.sendLocked(nil)
	}
	return nil
}
