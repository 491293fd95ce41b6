package results

import (
	"context"
	"io"
)

// Reader reads one stream, live or not. Not safe for concurrent use, but Close may be called once while nothing else is.
type Reader struct {
	// Flush, when set, is called by the Copy methods after each batch they wrote.
	Flush func() error

	s    *stream
	from uint64 // nothing before this offset is returned

	pos  int64  // of the record that is next in the file
	used int    // bytes of its payload that were read
	off  uint64 // offset of the next byte to read
	next uint64 // offset behind what was returned
	stop int64  // nothing is read at or behind this position

	buf    *[]byte // lent by the pool while there is something to read
	win    []byte  // whole records, read and checked, not yet returned
	own    [HeaderSize + gapSize]byte
	ended  bool  // the end record was made
	failed error // of a Copy method's peer: what the window held is lost to it
	closed bool
}

func newReader(s *stream, from uint64) *Reader {
	return &Reader{s: s, from: from, next: from, stop: everything}
}

// Offset is where to resume: the offset behind all that Next returned or a Copy method wrote.
func (r *Reader) Offset() uint64 { return r.next }

// Next returns the next record; its payload is valid until the next call. A record may come in several pieces, each with
// its own offset. A gap record stands for bytes that are not kept, or that a live stream has dropped before r read them.
//
// At the end of what is there Next waits for more when follow is set, else returns io.EOF; after the end record it
// always does. Other errors: the cause of ctx, ErrRemoved, ErrClosed, ErrCorrupt.
func (r *Reader) Next(ctx context.Context, follow bool) (Record, error) {
	if err := r.await(ctx, follow); err != nil {
		return Record{}, err
	}
	return r.shift(), nil
}

// await returns nil as soon as the window holds a record.
func (r *Reader) await(ctx context.Context, follow bool) error {
	for len(r.win) == 0 || r.failed != nil {
		if r.failed != nil {
			return r.failed
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v, err := r.s.look()
		if r.closed {
			err = fault(r.s.id, ErrClosed, "", nil)
		}
		if err != nil {
			return err
		}
		more, err := r.fill(v)
		switch {
		case err != nil:
			return err
		case more:
			return nil
		case v.ended && r.ended:
			return io.EOF
		case v.ended:
			r.finish(&v)
		case !follow:
			return io.EOF
		default:
			if err := r.wait(ctx, &v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reader) wait(ctx context.Context, v *view) error {
	ch := r.s.changed(v)
	if ch == nil {
		return nil
	}
	r.release()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close lets go of the stream.
func (r *Reader) Close() error {
	if !r.closed {
		r.closed = true
		r.win = nil
		r.release()
		r.s.logs.drop(r.s)
	}
	return nil
}
