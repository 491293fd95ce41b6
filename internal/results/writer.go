package results

import (
	"sync"

	"sandboxd/internal/job"
)

// Writer appends to the stream of one job. Safe for concurrent use, but the order of concurrent Appends is open.
type Writer struct {
	s *stream

	mu      sync.Mutex
	err     error // why nothing more can be appended
	lost    error // of a failed sync
	info    *job.StreamInfo
	rawPos  int64 // the newest record written to the file, and the length in its header there,
	rawLast int   // which is more than it has while it may grow
	gen     uint64
	saved   struct{ end, oldest int64 } // positions that the page tells
	skip    [2]uint64
	tail    tail
	hash    hasher
	head    [HeaderSize]byte
	slot    [slotSize]byte
}

// checkpoint is how many bytes are written before the page learns of them. It bounds what recovery has to sum up.
const checkpoint = 4 << 20

// Append adds bytes of KindStdout or KindStderr, at most MaxPayload, read at timeNS (Unix nanoseconds). When it returns
// nil they are in the file (not yet on the disk), survive a kill of the daemon, and are visible to readers.
//
// After ErrFull the stream is as it was and the same call may be tried again. After ErrIO it is as it was as far as the
// disk obeys. p is not kept.
func (w *Writer) Append(kind uint8, timeNS int64, p []byte) error {
	if kind != KindStdout && kind != KindStderr || len(p) > MaxPayload {
		return job.Errorf(job.CodeInvalid, "", "append of kind %d with %d bytes: want 1 or 2 and at most %d", kind, len(p), MaxPayload)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	p = w.fresh(kind, p)
	limit := w.s.disk.lay.maxPayload()
	for first := true; len(p) > 0; first = false {
		part := p[:min(len(p), limit)]
		if err := w.append(header{kind: kind, time: timeNS}, part); err != nil {
			if !first { // in a ring smaller than p: a part is out already, another try would repeat it
				w.err = err
			}
			return err
		}
		p = p[len(part):]
	}
	w.hash.kick(&w.s.view)
	return nil
}

// append adds p, which is at most one record's payload, whole or not at all.
func (w *Writer) append(h header, p []byte) error {
	next := w.s.view // nobody else changes it
	var buf [2]mark  // p is in two records where head and ring meet, else in one
	starts := buf[:0]
	for left := p; len(left) > 0; {
		n, err := w.put(&next, h, left)
		if err != nil {
			return w.undo("write", err)
		}
		left = left[n:]
		starts = append(starts, mark{next.lastPos, next.last.off})
	}
	next.sums[h.kind-1].add(p)
	if next.turned() || next.end.pos-w.saved.end >= checkpoint {
		if err := w.save(&next.state); err != nil {
			return w.undo("write", err)
		}
	}
	w.s.publish(&next, starts)
	if h.kind == KindStdout {
		w.tail.add(p)
	}
	return nil
}

// save writes the page.
func (w *Writer) save(st *state) error {
	if err := w.s.disk.writePage(st, w.gen+1, &w.slot); err != nil {
		return err
	}
	w.gen++
	w.saved.end, w.saved.oldest = st.end.pos, st.oldest.pos
	return nil
}

// undo takes back what a failed append left in the file. What it left in a turned ring lies behind the end that the page
// gives, where nobody looks.
func (w *Writer) undo(step string, cause error) error {
	v := &w.s.view
	if w.rawPos != v.lastPos {
		w.rawPos, w.rawLast = v.lastPos, v.last.n
	}
	if !v.turned() {
		if err := w.s.disk.cut(v.end.pos); err != nil {
			w.err = diskFault(w.s.id, "take back a failed write", err)
			return w.err
		}
	}
	return diskFault(w.s.id, step, cause)
}

// Sums returns the counts and checksums of all that was appended, kept or not.
func (w *Writer) Sums() (stdout, stderr Sum) {
	v, _ := w.s.look()
	return v.sums[0], v.sums[1]
}

// Tail returns a copy of the last bytes of stdout, at most 16 KiB. After a Reopen they are what the file still holds.
func (w *Writer) Tail() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]byte(nil), w.tail.bytes()...)
}
