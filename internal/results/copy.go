package results

import (
	"context"
	"errors"
	"io"
)

// Kinds says which streams CopyRaw writes.
type Kinds uint8

// The streams.
const (
	OnlyStdout Kinds = 1 << KindStdout
	OnlyStderr Kinds = 1 << KindStderr
	Both       Kinds = OnlyStdout | OnlyStderr
)

func (k Kinds) has(kind uint8) bool { return k&Both&(1<<kind) != 0 }

// CopyRecords writes records, headers included, as they are in the file where they can be, gap and end records among
// them. With follow it returns after the end record, without it at the end of what was there when it began. Errors as
// those of Next, and of w and Flush; after one of these r is of no more use, but Offset tells where to resume.
func (r *Reader) CopyRecords(ctx context.Context, w io.Writer, follow bool) error {
	return r.copy(ctx, w, follow, func(win []byte) []byte { return win })
}

// CopyRaw writes the bare bytes of the kinds, and returns how many bytes of the stream were left out as gaps (of either
// kind: nobody knows what they were). Otherwise as CopyRecords.
func (r *Reader) CopyRaw(ctx context.Context, w io.Writer, kinds Kinds, follow bool) (missing uint64, err error) {
	err = r.copy(ctx, w, follow, func(win []byte) []byte {
		n, first := 0, 0
		for i := 0; i < len(win); {
			h := getHeader(win[i:])
			payload := win[i+HeaderSize : i+int(h.size())]
			switch {
			case h.kind == KindGap:
				missing += Record{Kind: KindGap, Payload: payload}.Missing()
			case kinds.has(h.kind) && n == 0:
				first, n = i+HeaderSize, len(payload)
			case kinds.has(h.kind):
				n += copy(win[first+n:], payload)
			}
			i += int(h.size())
		}
		return win[first : first+n]
	})
	return missing, err
}

// copy writes what shape makes of each window.
func (r *Reader) copy(ctx context.Context, w io.Writer, follow bool, shape func(win []byte) []byte) error {
	v, err := r.s.look()
	if err != nil {
		return err
	}
	for {
		if !follow && !v.ended && r.next >= v.end.off {
			return nil
		}
		if err := r.await(ctx, follow); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		next := max(r.next, r.off)
		if b := shape(r.win); len(b) > 0 {
			if r.failed = r.batch(w, b); r.failed != nil {
				return r.failed
			}
		}
		r.win, r.next = nil, next
	}
}

func (r *Reader) batch(w io.Writer, b []byte) error {
	if _, err := w.Write(b); err != nil {
		return err
	}
	if r.Flush == nil {
		return nil
	}
	return r.Flush()
}
