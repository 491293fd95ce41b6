package results

const (
	smallAppend = 4 << 10  // an append of less joins the record before it
	mergeSize   = 64 << 10 // until that has this many bytes of payload
	mergeTime   = int64(10e6)
)

// put writes the first bytes of p as one record, or at the end of the newest, and notes that in next. It returns how
// many.
func (w *Writer) put(next *view, h header, p []byte) (int, error) {
	if w.joins(next, h, len(p)) {
		return len(p), w.extend(next, p)
	}
	if err := w.seal(next); err != nil {
		return 0, err
	}
	lay := w.s.disk.lay
	if at := next.end; at.pos < lay.head && lay.head-at.pos <= HeaderSize || at.pos == lay.head {
		next.headEnd, next.headOff = at.pos, at.off
		next.end.pos = lay.head
		next.oldest = next.end
	}
	at, n := next.end, len(p)
	if at.pos < lay.head {
		n = int(min(int64(n), lay.head-at.pos-HeaderSize))
	}
	h.off, h.n = at.off, n
	if err := w.room(next, at.pos+h.size(), at); err != nil {
		return 0, err
	}
	h.put(w.head[:])
	if err := w.s.disk.writeAt(at.pos, w.head[:], p[:n]); err != nil {
		return 0, err
	}
	w.rawPos, w.rawLast = at.pos, n
	next.lastPos, next.last = at.pos, h
	next.end = mark{at.pos + h.size(), at.off + uint64(n)}
	return n, nil
}

// joins says whether n bytes more belong into the newest record. It keeps a flood of small writes from being mostly
// headers.
func (w *Writer) joins(v *view, h header, n int) bool {
	age := h.time - v.last.time
	return v.lastPos >= 0 && v.last.kind == h.kind && age >= 0 && age <= mergeTime &&
		n < smallAppend && v.last.n+n <= w.growth(v)
}

// growth is what the newest record may come to.
func (w *Writer) growth(v *view) int {
	lay := w.s.disk.lay
	most := min(mergeSize, lay.maxPayload())
	if v.lastPos < lay.head {
		most = int(min(int64(most), lay.head-v.lastPos-HeaderSize))
	}
	return most
}

// extend adds p to the newest record. Before the first time its header on disk is made to promise all that it may come
// to, so that each further write is one call.
func (w *Writer) extend(next *view, p []byte) error {
	at := next.end.pos
	if err := w.room(next, at+int64(len(p)), mark{next.lastPos, next.last.off}); err != nil {
		return err
	}
	if w.rawLast < next.last.n+len(p) {
		if err := w.restate(next, w.growth(next)); err != nil {
			return err
		}
	}
	if err := w.s.disk.writeAt(at, nil, p); err != nil {
		return err
	}
	next.last.n += len(p)
	next.end = mark{at + int64(len(p)), next.end.off + uint64(len(p))}
	return nil
}

// seal makes the header on disk of the newest record tell its true length, before anything is put behind it.
func (w *Writer) seal(v *view) error {
	if v.lastPos < 0 || w.rawLast == v.last.n {
		return nil
	}
	return w.restate(v, v.last.n)
}

func (w *Writer) restate(v *view, n int) error {
	h := v.last
	h.n = n
	h.put(w.head[:])
	if err := w.s.disk.writeAt(v.lastPos, w.head[:], nil); err != nil {
		return err
	}
	w.rawLast = n
	return nil
}

// room gives up the oldest records of the ring when the next ones, up to the position end, take their place: first to
// readers, then in the page, and only then may a byte of them change. spare is the newest record's start.
func (w *Writer) room(next *view, end int64, spare mark) error {
	if limit := end - w.s.disk.lay.ring; limit > next.oldest.pos {
		next.oldest = w.s.evict(limit, spare)
	}
	if next.oldest.pos == w.saved.oldest {
		return nil
	}
	return w.save(&w.s.view.state)
}
