package results

import (
	"errors"
	"slices"
)

// span is a piece of the file.
type span struct {
	pos int64
	n   int
}

// survey is what recovery learns from a file that has no Writer.
type survey struct {
	d       *disk
	base    int64 // the page's sums hold up to this position
	view    view
	anchors []mark
	rawLast int
	outs    []span // the last tailSize bytes of stdout
	outLen  int
	stdout  uint64 // bytes of stdout seen
	buf     []byte
}

// findEnd finds where the records of a file end and what the stream had come to. size is that of the file without its page.
func findEnd(d *disk, st state, size int64) (*survey, error) {
	v := &survey{d: d, view: view{state: st, lastPos: -1}}
	var err error
	if st.turned() {
		err = v.turned(size)
	} else {
		err = v.straight(size)
	}
	if errors.Is(err, errShort) {
		err = nil // somebody cut the file while it was read; readers will see
	}
	if st.ended { // nothing changes any more, and readers check what they read
		v.view, v.anchors = view{state: st, lastPos: -1}, nil
	}
	return v, err
}

// straight recovers a file whose ring did not turn: its own end says where the records end.
func (v *survey) straight(size int64) error {
	st := v.view.state
	v.base = st.end.pos
	end, err := v.line(size)
	if err != nil {
		return err
	}
	if end.pos < st.end.pos { // less than the page knows of, so its sums are of no use
		*v = survey{d: v.d, view: view{state: newState(st.lay), lastPos: -1}}
		v.view.committed, v.view.mark, v.view.marked = st.committed, st.mark, st.marked
		end, err = v.line(size)
	}
	v.view.end = end
	return err
}

// line walks head and ring as one run of records.
func (v *survey) line(size int64) (mark, error) {
	lay := v.d.lay
	end, err := v.d.walk(mark{}, min(size, lay.head), v.visit)
	if err != nil || lay.head-end.pos > HeaderSize || size <= lay.head+HeaderSize {
		return end, err
	}
	ring := mark{lay.head, end.off}
	last, err := v.d.walk(ring, min(size, lay.last()), v.visit)
	if err != nil || last == ring {
		return end, err
	}
	v.view.headEnd, v.view.headOff, v.view.oldest = end.pos, end.off, ring
	return last, nil
}

// turned recovers a file whose ring turned. The page's word counts; what does not agree with it was not written by us
// and is left out.
func (v *survey) turned(size int64) error {
	st := &v.view.state
	v.base = st.end.pos
	head, err := v.d.walk(mark{}, min(size, st.headEnd), v.visit)
	if err != nil {
		return err
	}
	if v.view.lastPos >= 0 && v.rawLast != v.view.last.n { // cut within a record, whose header tells more than is there
		head = mark{v.view.lastPos, v.view.last.off}
	}
	if head.pos != st.headEnd || head.off != st.headOff {
		st.headEnd, st.headOff = head.pos, min(head.off, st.oldest.off)
	}
	end, err := v.d.walk(st.oldest, st.end.pos, v.visit)
	if err != nil && !errors.Is(err, errShort) {
		return err
	}
	if err != nil || end != st.end {
		st.oldest, v.anchors, v.view.lastPos = st.end, []mark{st.end}, -1
		v.outs = nil
	}
	if v.stdout != st.sums[0].Bytes { // some of stdout is in the gap: what the head holds is not its end
		v.outs = slices.DeleteFunc(v.outs, func(s span) bool { return s.pos < v.d.lay.head })
	}
	return nil
}

func (v *survey) visit(pos int64, h header, raw int) error {
	v.view.last, v.view.lastPos, v.rawLast = h, pos, raw
	lay := v.d.lay
	if n := len(v.anchors); pos >= lay.head && (n == 0 || pos-v.anchors[n-1].pos >= lay.step()) {
		v.anchors = append(v.anchors, mark{pos, h.off})
	}
	from := max(pos+HeaderSize, min(v.base, pos+h.size()))
	if h.kind == KindStdout {
		v.out(span{pos + HeaderSize, h.n})
	}
	return v.sum(h.kind, span{from, int(pos + h.size() - from)})
}

// sum counts what the page did not know of.
func (v *survey) sum(kind uint8, s span) error {
	if s.n == 0 {
		return nil
	}
	if v.buf == nil {
		v.buf = make([]byte, MaxPayload)
	}
	if err := v.d.readAt(v.buf[:s.n], s.pos); err != nil {
		return err
	}
	v.view.sums[kind-1].add(v.buf[:s.n])
	return nil
}

// out notes a piece of stdout and forgets those that are not of the last tailSize bytes.
func (v *survey) out(s span) {
	v.outs = append(v.outs, s)
	v.outLen += s.n
	v.stdout += uint64(s.n)
	for v.outLen-v.outs[0].n >= tailSize {
		v.outLen -= v.outs[0].n
		v.outs = v.outs[1:]
	}
}
