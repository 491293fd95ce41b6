package supervise

import (
	"io"
	"sync"

	"sandboxd/internal/wire"
)

// creditStep is how much the command must have taken before a credit is worth a frame of its own.
const creditStep = 128 << 10

// stdin hands the daemon's bytes to the command. The daemon may be wire.StdinWindow ahead of the command, so feeding
// never waits; a pump writes. Once the command reads no more, or has ended, what comes is counted and dropped.
type stdin struct {
	wake func() // tells the sender that a credit may be due

	mu      sync.Mutex
	change  *sync.Cond // of mu
	dst     io.WriteCloser
	buf     []byte // of StdinWindow bytes; nil until expected
	got     uint64 // bytes received
	taken   uint64 // bytes written or dropped
	told    uint64 // bytes credited
	eof     bool   // the end was received
	dead    bool   // the command reads no more
	mustSay bool   // a credit is due whatever it says
}

func newStdin(wake func()) *stdin {
	s := &stdin{wake: wake}
	s.change = sync.NewCond(&s.mu)
	return s
}

// expect makes feed take frames. Until then it refuses them.
func (s *stdin) expect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = make([]byte, wire.StdinWindow)
}

// pump writes what comes to the command's pipe, until the end or until shut, and closes it.
func (s *stdin) pump(dst io.WriteCloser) {
	s.mu.Lock()
	s.dst = dst
	s.mu.Unlock()
	defer dst.Close()
	for p := s.next(); p != nil; p = s.next() {
		n, err := dst.Write(p) // EPIPE: the command closed its stdin, which is its right
		s.took(n, err)
	}
}

func (s *stdin) took(n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += uint64(n)
	if err != nil {
		s.dead, s.mustSay = true, true
		s.dropLocked()
	}
	if s.taken-s.told >= creditStep {
		s.wake()
	}
}

// feed takes one stdin frame; an empty one is the end.
func (s *stdin) feed(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.buf == nil || s.eof:
		return wire.ErrOrder
	case len(p) > len(s.buf)-int(s.got-s.taken):
		return wire.ErrCredit
	case len(p) == 0:
		s.eof = true
	case s.dead:
		s.got += uint64(len(p))
		s.dropLocked()
	default:
		at := int(s.got % uint64(len(s.buf)))
		n := copy(s.buf[at:], p)
		copy(s.buf, p[n:])
		s.got += uint64(len(p))
	}
	s.change.Signal()
	return nil
}

func (s *stdin) dropLocked() {
	s.taken = s.got
	s.wake()
}

// next waits for bytes to write and returns those that lie in one piece, or nil at the end.
func (s *stdin) next() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got == s.taken && s.taken > s.told {
		s.wake()
	}
	for s.got == s.taken && !s.eof && !s.dead {
		s.change.Wait()
	}
	if s.dead || s.got == s.taken {
		return nil
	}
	at := int(s.taken % uint64(len(s.buf)))
	return s.buf[at:min(len(s.buf), at+int(s.got-s.taken))]
}

// shut drops what is left and everything to come: the command has ended. Closing the pipe ends a write that waits.
func (s *stdin) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buf == nil {
		return
	}
	s.dead, s.mustSay = true, true
	s.dropLocked()
	if s.dst != nil {
		_ = s.dst.Close()
	}
	s.change.Signal()
}

// credit is the credit that is due, if one is.
func (s *stdin) credit() (wire.StdinCredit, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	behind := s.taken - s.told
	idle := s.taken == s.got && behind > 0
	if behind < creditStep && !idle && !s.mustSay {
		return wire.StdinCredit{}, false
	}
	s.told, s.mustSay = s.taken, false
	return wire.StdinCredit{Bytes: s.taken, Closed: s.dead}, true
}

// resumed is what a new connection must hear of stdin: what was received, and soon a credit.
func (s *stdin) resumed() (got uint64, eof bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustSay = s.buf != nil
	return s.got, s.eof
}
