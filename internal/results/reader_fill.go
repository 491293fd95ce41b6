package results

import "errors"

// fill reads whole records from the Reader's place on into the window, as many as are there and fit. It returns false
// when there are none.
func (r *Reader) fill(v view) (bool, error) {
	for again := false; ; {
		more, err := r.try(&v, again)
		switch {
		case errors.Is(err, errOvertaken):
			if v, err = r.s.look(); err != nil {
				return false, err
			}
			again = true
		case err != nil:
			return false, fault(r.s.id, ErrCorrupt, "read", err)
		case more != passedOn:
			return more == filled, nil
		}
	}
}

// What try came to.
type progress int

const (
	nothing  progress = iota // there is nothing now
	filled                   // the window holds records
	passedOn                 // the Reader came to another place: try again
)

func (r *Reader) try(v *view, again bool) (progress, error) {
	if r.off < r.from {
		if err := r.seek(v); err != nil {
			return nothing, err
		}
	}
	r.cross(v)
	if r.behind(v) {
		return r.overtaken(v, again), nil
	}
	n, at, err := r.read(v)
	if err != nil || at != filled {
		return at, err
	}
	return filled, r.accept((*r.buf)[:n], v)
}

// read fills the buffer from the Reader's place on with n bytes that begin with a header.
func (r *Reader) read(v *view) (n int, at progress, err error) {
	lim := r.limit(v)
	start, lead := r.pos, 0
	if r.used > 0 {
		h, err := r.current(v)
		if err != nil {
			return 0, nothing, err
		}
		if r.used >= h.n {
			return 0, r.pass(v, h), nil
		}
		start, lead = r.pos+HeaderSize+int64(r.used), HeaderSize
		header{off: r.off, time: h.time, n: h.n - r.used, kind: h.kind}.put(r.grab(lim - r.pos))
	}
	if start >= lim {
		return 0, nothing, nil
	}
	buf := r.grab(lim - r.pos)
	n = lead + int(min(int64(len(buf)-lead), lim-start))
	if err := r.s.readAt(buf[lead:n], start); err != nil {
		return 0, nothing, err
	}
	if i := v.lastPos - start + int64(lead); i >= int64(lead) && i+HeaderSize <= int64(n) {
		v.last.put(buf[i:]) // on disk it promises more than v has
	}
	return n, filled, nil
}

// pass goes from a record that was read to its end to the next one.
func (r *Reader) pass(v *view, h header) progress {
	if r.pos == v.lastPos {
		return nothing
	}
	r.pos, r.used = r.pos+h.size(), 0
	return passedOn
}

// limit is the position before which records are to be read now.
func (r *Reader) limit(v *view) int64 {
	lim := min(v.end.pos, r.stop)
	if r.pos < r.s.disk.lay.head {
		lim = min(lim, v.headEnd)
	}
	return lim
}

// current is the header of the record that was read in part.
func (r *Reader) current(v *view) (header, error) {
	if r.pos == v.lastPos {
		return v.last, nil
	}
	b := r.grab(HeaderSize)[:HeaderSize]
	if err := r.s.readAt(b, r.pos); err != nil {
		return header{}, err
	}
	h, ok := stored(b, r.off-uint64(r.used))
	if !ok {
		return h, ErrCorrupt
	}
	return h, nil
}

// accept checks the records in b and makes those that are whole the window. The Reader's place is then behind them, or at
// the end of the newest one, which may grow.
func (r *Reader) accept(b []byte, v *view) error {
	i := 0
	for len(b)-i >= HeaderSize {
		h, ok := stored(b[i:], r.off)
		if !ok {
			return ErrCorrupt
		}
		if h.size() > int64(len(b)-i) {
			break
		}
		i += int(h.size())
		r.off += uint64(h.n)
		if r.pos == v.lastPos {
			r.used += h.n
		} else {
			r.pos, r.used = r.pos+h.size()+int64(r.used), 0
		}
	}
	if i == 0 {
		return ErrCorrupt
	}
	r.win = b[:i]
	return nil
}
