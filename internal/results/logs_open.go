package results

import "sandboxd/internal/job"

// Create makes the stream of a job and its Writer. A job that has one already is a conflict: see Reopen.
func (l *Logs) Create(id job.ID, o Options) (*Writer, error) {
	lay, err := layoutFor(o.Keep)
	if err != nil {
		return nil, err
	}
	return l.write(id, func(s *stream) error {
		if s.opened {
			return exists(id)
		}
		return s.create(lay)
	})
}

// Reopen takes up the stream of a job that an earlier daemon wrote. What that one was writing when it died is cut off;
// all that it had acked is there. The Keep of a stream is that of its Create; o serves only when the daemon died before
// that was on disk. A stream that was ended already gives a Writer whose Close returns what it returned then.
func (l *Logs) Reopen(id job.ID, o Options) (*Writer, error) {
	lay, err := layoutFor(o.Keep)
	if err != nil {
		return nil, err
	}
	return l.write(id, func(s *stream) error {
		if s.opened { // for readers, who go on, or by a Writer that was detached
			d := s.disk
			return s.survey(&d, &lay)
		}
		return s.load(&lay)
	})
}

// write attaches a Writer to the stream that open opens.
func (l *Logs) write(id job.ID, open func(*stream) error) (*Writer, error) {
	s, err := l.take(id)
	if err != nil {
		return nil, err
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	w, err := newWriter(s, open)
	if err != nil {
		l.drop(s)
		return nil, err
	}
	return w, nil
}

func newWriter(s *stream, open func(*stream) error) (*Writer, error) {
	if err := s.attach(); err != nil {
		return nil, err
	}
	w := &Writer{s: s}
	if err := w.start(open); err != nil {
		s.detach()
		return nil, err
	}
	return w, nil
}

func (w *Writer) start(open func(*stream) error) error {
	s := w.s
	if err := open(s); err != nil {
		return err
	}
	s.opened = true
	w.gen, w.rawPos, w.rawLast = s.gen, s.view.lastPos, s.rawLast
	w.hash.init(s)
	if err := w.repair(); err != nil {
		return err
	}
	if err := s.logs.register(w); err != nil {
		return err
	}
	if w.err == nil {
		w.hash.kick(&s.view)
	}
	return nil
}

// repair makes the file what recovery found it to be, and takes up what an earlier Writer held in memory.
func (w *Writer) repair() error {
	s := w.s
	for _, out := range s.outs {
		b := make([]byte, out.n)
		if err := s.disk.readAt(b, out.pos); err != nil {
			return diskFault(s.id, "read", err)
		}
		w.tail.add(b)
	}
	if s.view.ended {
		w.err = fault(s.id, ErrEnded, "", nil)
		return nil
	}
	if !s.view.turned() {
		if err := s.disk.cut(s.view.end.pos); err != nil {
			return diskFault(s.id, "cut", err)
		}
	}
	for i, sum := range s.view.sums {
		if s.view.committed && sum.Bytes > s.view.marked[i] {
			w.skip[i] = sum.Bytes - s.view.marked[i]
		}
	}
	if err := w.save(&s.view.state); err != nil {
		return diskFault(s.id, "write", err)
	}
	return nil
}
