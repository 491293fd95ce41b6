package results

import (
	"errors"
	"io"
	"os"
)

// ops are the calls that change a file; a test replaces one to make exactly that step fail.
type ops struct {
	writev   func(f *os.File, bufs [][]byte, off int64) (int, error)
	truncate func(f *os.File, size int64) error
	sync     func(f *os.File) error
}

func systemOps() *ops {
	return &ops{writev: pwritev, truncate: (*os.File).Truncate, sync: (*os.File).Sync}
}

// disk is a stream's file, addressed by position.
type disk struct {
	f   *os.File
	lay layout
	ops *ops
	vec [2][]byte // for writes, of which there is one at a time
}

// readAt fills p from pos on. A file that ends before that was changed by somebody else: errShort.
func (d *disk) readAt(p []byte, pos int64) error {
	for len(p) > 0 {
		n := int(min(int64(len(p)), d.lay.run(pos)))
		if _, err := d.f.ReadAt(p[:n], d.lay.at(pos)); err != nil {
			if errors.Is(err, io.EOF) {
				return errShort
			}
			return err
		}
		p, pos = p[n:], pos+int64(n)
	}
	return nil
}

var errShort = errors.New("the file ends too early")

// writeAt puts head and body at pos: one call, or two where the ring turns.
func (d *disk) writeAt(pos int64, head, body []byte) error {
	n := d.lay.run(pos)
	if n >= int64(len(head)+len(body)) {
		return d.write(d.lay.at(pos), head, body)
	}
	h, b := min(n, int64(len(head))), max(n-int64(len(head)), 0)
	if err := d.write(d.lay.at(pos), head[:h], body[:b]); err != nil {
		return err
	}
	return d.write(d.lay.at(pos+n), head[h:], body[b:])
}

// write puts head and body together at a place in the file.
func (d *disk) write(place int64, head, body []byte) error {
	vec := d.vec[:0]
	if len(head) > 0 {
		vec = append(vec, head)
	}
	if len(body) > 0 {
		vec = append(vec, body)
	}
	_, err := d.ops.writev(d.f, vec, place)
	d.vec = [2][]byte{}
	return err
}

// cut makes the file end at pos. Only for a ring that has not turned.
func (d *disk) cut(pos int64) error { return d.ops.truncate(d.f, pageSize+pos) }

// writePage puts st into the slot of gen; the other slot stays as it is, so that one of them is always whole.
func (d *disk) writePage(st *state, gen uint64, scratch *[slotSize]byte) error {
	st.encode(scratch, gen)
	return d.write(int64(gen%2)*slotSize, scratch[:], nil)
}

// readPage returns the page's state; ok is false for a file that has no sound one.
func (d *disk) readPage() (st state, gen uint64, ok bool, err error) {
	page := make([]byte, pageSize)
	n, err := d.f.ReadAt(page, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return state{}, 0, false, err
	}
	clear(page[n:])
	st, gen, ok = decodePage(page)
	return st, gen, ok, nil
}
