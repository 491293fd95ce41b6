package results

import "encoding/binary"

// shift takes the first record of the window.
func (r *Reader) shift() Record {
	h := getHeader(r.win)
	rec := Record{Offset: h.off, Time: h.time, Kind: h.kind, Payload: r.win[HeaderSize:h.size()]}
	r.win = r.win[h.size():]
	r.passed(h, rec.Payload)
	return rec
}

func (r *Reader) passed(h header, payload []byte) {
	switch h.kind {
	case KindStdout, KindStderr:
		r.next = h.off + uint64(h.n)
	case KindGap:
		r.next = h.off + binary.BigEndian.Uint64(payload)
	}
}

// finish puts the end record into the window.
func (r *Reader) finish(v *view) {
	r.ended = true
	header{off: v.end.off, time: v.endTime, kind: KindEnd}.put(r.own[:])
	r.win = r.own[:HeaderSize]
}

// gap puts a gap record into the window, unless all that is missing lies before from.
func (r *Reader) gap(to uint64) bool {
	at := max(r.off, r.from)
	r.off = to
	if at >= to {
		return false
	}
	header{off: at, n: gapSize, kind: KindGap}.put(r.own[:])
	binary.BigEndian.PutUint64(r.own[HeaderSize:], to-at)
	r.win = r.own[:]
	return true
}

// grab makes r.buf one of at least n bytes, or the largest.
func (r *Reader) grab(n int64) []byte {
	if r.buf != nil && int64(len(*r.buf)) < min(n, MaxPayload+HeaderSize) {
		r.release()
	}
	if r.buf == nil {
		r.buf = r.s.logs.pool.get(n)
	}
	return *r.buf
}

func (r *Reader) release() {
	if r.buf != nil {
		r.s.logs.pool.put(r.buf)
		r.buf = nil
	}
}
