package results

// tailSize bounds what is kept in memory of the end of stdout, in bytes.
const tailSize = 16 << 10

// tail remembers the last tailSize bytes it was given.
type tail struct{ buf []byte }

func (t *tail) add(p []byte) {
	if len(p) >= tailSize {
		t.buf = append(t.buf[:0], p[len(p)-tailSize:]...)
		return
	}
	if len(t.buf)+len(p) > 2*tailSize {
		t.buf = t.buf[:copy(t.buf, t.bytes())]
	}
	t.buf = append(t.buf, p...)
}

func (t *tail) bytes() []byte { return t.buf[max(len(t.buf)-tailSize, 0):] }
