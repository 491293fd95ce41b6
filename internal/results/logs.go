package results

import (
	"errors"
	"path/filepath"
	"sync"

	"sandboxd/internal/job"
)

// Logs keeps the streams of all jobs in one folder. Safe for concurrent use.
type Logs struct {
	dir  string
	ops  *ops
	pool bufferPool

	mu      sync.Mutex
	streams map[job.ID]*stream // those in use
	writers map[*Writer]struct{}
	closed  bool
}

// Options of a new stream.
type Options struct {
	Keep int64 // bytes of the file at most, MinKeep to MaxKeep
}

// New returns the streams under dir. The folder is made when the first stream is.
func New(dir string) *Logs {
	return &Logs{dir: dir, ops: systemOps(), streams: map[job.ID]*stream{}, writers: map[*Writer]struct{}{}}
}

// path spreads the files by the id's last digits; the first ones are the time and the same for years.
func (l *Logs) path(id job.ID) string {
	return filepath.Join(l.dir, string(id[len(id)-2:]), string(id)+suffix)
}

const suffix = ".log"

// take returns the stream of id with one more reference. It is opened by the caller.
func (l *Logs) take(id job.ID) (*stream, error) {
	if _, err := job.ParseID(string(id)); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fault(id, ErrClosed, "", nil)
	}
	s := l.streams[id]
	if s == nil {
		s = &stream{id: id, logs: l}
		l.streams[id] = s
	}
	s.refs++
	return s, nil
}

// drop gives a reference back; the last one closes the file.
func (l *Logs) drop(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.refs--
	if s.refs > 0 {
		return
	}
	if l.streams[s.id] == s {
		delete(l.streams, s.id)
	}
	s.closeFile()
}

// Reader reads the stream of a job from the byte from on. The stream may be live, finished, or left by a daemon that was
// killed. An error with code not_found when the job has none.
func (l *Logs) Reader(id job.ID, from uint64) (*Reader, error) {
	s, err := l.take(id)
	if err != nil {
		return nil, err
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if !s.opened {
		if err := s.load(nil); err != nil {
			l.drop(s)
			return nil, err
		}
		s.opened = true
	}
	return newReader(s, from), nil
}

// Close detaches all Writers, whose jobs go on, and ends all Readers with ErrClosed. Files are closed when their
// Readers are.
func (l *Logs) Close() error {
	l.mu.Lock()
	l.closed = true
	writers := make([]*Writer, 0, len(l.writers))
	for w := range l.writers {
		writers = append(writers, w)
	}
	streams := make([]*stream, 0, len(l.streams))
	for _, s := range l.streams {
		streams = append(streams, s)
	}
	l.mu.Unlock()
	var errs []error
	for _, w := range writers {
		errs = append(errs, w.Detach())
	}
	for _, s := range streams {
		s.leave(fault(s.id, ErrClosed, "", nil), true)
	}
	return errors.Join(errs...)
}

func (l *Logs) register(w *Writer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fault(w.s.id, ErrClosed, "", nil)
	}
	l.writers[w] = struct{}{}
	return nil
}

func (l *Logs) unregister(w *Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.writers, w)
}
