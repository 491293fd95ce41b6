package results

import (
	"os"

	"sandboxd/internal/job"
)

// Sizes and settings the tests speak of.
const (
	PageSize = pageSize
	RingSize = ringSize
)

// Path is where the stream of id is kept.
func (l *Logs) Path(id job.ID) string { return l.path(id) }

// Crash lets go of the stream as a killed daemon does: nothing more is written.
func (w *Writer) Crash() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release(ErrClosed)
}

// FailWrites makes every later write of l end with err after it wrote short bytes at most, as long as fail says so.
func (l *Logs) FailWrites(fail func() (short int, err error)) {
	l.ops.writev = func(f *os.File, bufs [][]byte, off int64) (int, error) {
		short, err := fail()
		if err == nil {
			return pwritev(f, bufs, off)
		}
		for _, b := range bufs {
			b = b[:min(len(b), short)]
			if _, werr := f.WriteAt(b, off); werr != nil {
				return 0, werr
			}
			off, short = off+int64(len(b)), short-len(b)
		}
		return 0, err
	}
}

// FailSync makes every later sync of l end with err.
func (l *Logs) FailSync(err error) { l.ops.sync = func(*os.File) error { return err } }

// Streams is how many streams are in use.
func (l *Logs) Streams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streams)
}

// SetSlot writes a page that claims what it likes, with a checksum that holds.
func SetSlot(b *[512]byte, gen uint64, v []uint64) {
	var st state
	next := func() (x uint64) {
		if len(v) > 0 {
			x, v = v[0], v[1:]
		}
		return x
	}
	lay, err := layoutFor(MinKeep + int64(next()%(2<<20)))
	if err != nil {
		panic(err)
	}
	st = newState(lay)
	st.end = mark{int64(next()), next()}
	st.sums[0].Bytes = next()
	st.sums[1].Bytes = st.end.off - st.sums[0].Bytes
	if next()%2 == 0 {
		st.headEnd, st.headOff = int64(next()), next()
		st.oldest = mark{int64(next()), next()}
	}
	st.ended = next()%2 == 0
	st.committed = next()%2 == 0
	st.encode(b, gen)
}

// Forge is a record that would follow the newest one, and its place in the file: what older output could look like.
func (w *Writer) Forge(payload []byte) (place int64, record []byte) {
	v, _ := w.s.look()
	b := make([]byte, HeaderSize, HeaderSize+len(payload))
	header{off: v.end.off, n: len(payload), kind: KindStdout}.put(b)
	return v.lay.at(v.end.pos), append(b, payload...)
}
