package results

// seek goes to the byte from, or to the end when the stream does not come so far yet.
func (r *Reader) seek(v *view) error {
	if r.from >= v.end.off {
		r.pos, r.used, r.off = v.end.pos, 0, v.end.off
		if v.lastPos >= 0 {
			r.pos, r.used = v.lastPos, v.last.n
		}
		return nil
	}
	if r.used > 0 { // of a record that was the newest; it may hold from by now
		r.off -= uint64(r.used)
		r.used = 0
	}
	if head := r.s.disk.lay.head; v.end.pos > head && r.from >= v.headOff && r.pos < v.oldest.pos {
		r.pos, r.off = head, v.headOff // from is not in the head
		if r.from >= v.oldest.off {
			r.pos, r.off = v.oldest.pos, v.oldest.off
		}
	}
	return r.step(v)
}

// step passes over the records that end before from.
func (r *Reader) step(v *view) error {
	st := stepper{read: r.s.readAt, buf: r.grab(pageSize)[:pageSize]}
	for {
		r.cross(v)
		if r.behind(v) {
			return nil
		}
		h, ok, err := st.header(r.pos, r.limit(v), r.off)
		if err != nil {
			return err
		}
		if !ok {
			return ErrCorrupt
		}
		if left := r.from - r.off; left < uint64(h.n) {
			r.used, r.off = int(left), r.from
			return nil
		}
		r.pos, r.off = r.pos+h.size(), r.off+uint64(h.n)
	}
}

// cross goes over the few unused bytes between head and ring.
func (r *Reader) cross(v *view) {
	if head := r.s.disk.lay.head; r.pos >= v.headEnd && r.pos < head && head < r.stop {
		r.pos, r.used = head, 0
	}
}

// behind says whether the Reader's place was overwritten.
func (r *Reader) behind(v *view) bool {
	return r.pos >= r.s.disk.lay.head && r.pos < min(v.oldest.pos, r.stop)
}

// overtaken moves to the oldest record that is left, or, when the Writer was faster than the reading before, to one with
// some room behind it. It says whether that makes a gap.
func (r *Reader) overtaken(v *view, again bool) progress {
	to := v.oldest
	if again {
		to = r.s.middle()
	}
	r.pos, r.used = to.pos, 0
	if r.gap(to.off) {
		return filled
	}
	return passedOn
}
