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
	if r.from >= v.oldest.off && r.pos < v.oldest.pos && v.end.pos > r.s.disk.lay.head {
		r.pos, r.off = v.oldest.pos, v.oldest.off
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
