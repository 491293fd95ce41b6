package results

// stepper reads the headers of stored records one after the other, 4 KiB of the file at a time: small records come in
// bulk, the payload of large ones is passed over.
type stepper struct {
	read  func(p []byte, pos int64) error
	buf   []byte // pageSize bytes
	start int64  // position of buf[0]
	n     int    // bytes in buf
}

// header returns the header at pos, where the stream's byte at off should be stored. ok is false when there is none.
// Nothing is read at or behind lim.
func (s *stepper) header(pos, lim int64, off uint64) (h header, ok bool, err error) {
	if lim-pos <= HeaderSize {
		return header{}, false, nil
	}
	if pos < s.start || pos+HeaderSize > s.start+int64(s.n) {
		s.n = 0
		n := min(int64(len(s.buf)), lim-pos)
		if err := s.read(s.buf[:n], pos); err != nil {
			return header{}, false, err
		}
		s.start, s.n = pos, int(n)
	}
	h, ok = stored(s.buf[pos-s.start:], off)
	return h, ok, nil
}

// walk visits the sound records from at until lim and returns the place behind the last one. The newest record of a file
// may be cut short or promise more than came: it is visited with what is there.
func (d *disk) walk(at mark, lim int64, visit func(pos int64, h header, raw int) error) (mark, error) {
	st := stepper{read: d.readAt, buf: make([]byte, pageSize)}
	for {
		h, ok, err := st.header(at.pos, lim, at.off)
		if err != nil || !ok {
			return at, err
		}
		raw := h.n
		h.n = int(min(int64(h.n), lim-at.pos-HeaderSize))
		if err := visit(at.pos, h, raw); err != nil {
			return at, err
		}
		at = mark{at.pos + h.size(), at.off + uint64(h.n)}
	}
}
