package results_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"sandboxd/internal/results"
)

// parse reads what CopyRecords wrote, as a client does.
func parse(t *testing.T, b []byte) (recs []results.Record) {
	t.Helper()
	for len(b) > 0 {
		n := int(binary.BigEndian.Uint32(b[16:]))
		if n > results.MaxPayload || b[21]|b[22]|b[23] != 0 {
			t.Fatalf("bad header % x", b[:24])
		}
		recs = append(recs, results.Record{Offset: binary.BigEndian.Uint64(b), Time: int64(binary.BigEndian.Uint64(b[8:])),
			Kind: b[20], Payload: b[24 : 24+n]})
		b = b[24+n:]
	}
	return recs
}

func TestCopyRecordsWritesAFramedStreamFromAnyOffset(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 128<<10)
	m := prepared(60, 9000)
	m.play(t, w)
	for _, ended := range []bool{false, true} {
		if ended {
			_, err := w.Close(t.Context())
			must(t, err)
		}
		for from := uint64(0); from < uint64(len(m.bytes))+3; from += 7919 {
			r, err := l.Reader(id, from)
			must(t, err)
			var buf bytes.Buffer
			flushed := 0
			r.Flush = func() error { flushed++; return nil }
			must(t, r.CopyRecords(t.Context(), &buf, ended))
			got := reading{next: from}
			for _, rec := range parse(t, buf.Bytes()) {
				m.record(t, rec, &got)
			}
			if got.next != max(from, uint64(len(m.bytes))) || got.ended != ended || got.gaps > 1 || flushed == 0 && buf.Len() > 0 {
				t.Fatalf("from %d: %+v, %d flushes", from, got, flushed)
			}
			if r.Offset() != got.next {
				t.Fatalf("resume at %d, want %d", r.Offset(), got.next)
			}
			must(t, r.Close())
		}
	}
}

func TestCopyRawWritesTheBareBytesOfItsKinds(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 1<<20)
	m := prepared(50, 9000)
	m.play(t, w)
	tests := []struct {
		name  string
		kinds results.Kinds
		want  []byte
	}{
		{"both", results.Both, m.bytes},
		{"stdout", results.OnlyStdout, m.of(results.KindStdout)},
		{"stderr", results.OnlyStderr, m.of(results.KindStderr)},
		{"none", 0, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := l.Reader(id, 0)
			must(t, err)
			defer r.Close()
			var buf bytes.Buffer
			missing, err := r.CopyRaw(t.Context(), &buf, tt.kinds, false)
			if err != nil || missing != 0 || !bytes.Equal(buf.Bytes(), tt.want) {
				t.Errorf("%d bytes, %d missing, %v; want %d bytes", buf.Len(), missing, err, len(tt.want))
			}
		})
	}
}

func TestCopyRawCountsWhatIsMissing(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, results.MinKeep)
	m := prepared(60, 9000)
	m.play(t, w)
	r, err := l.Reader(id, 0)
	must(t, err)
	defer r.Close()
	var buf bytes.Buffer
	missing, err := r.CopyRaw(t.Context(), &buf, results.Both, false)
	if err != nil || missing == 0 || buf.Len()+int(missing) != len(m.bytes) {
		t.Errorf("%d bytes and %d missing of %d, %v", buf.Len(), missing, len(m.bytes), err)
	}
	_, err = w.Close(t.Context())
	must(t, err)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// The peer's error comes back, and a new reader goes on where the old one says.
func TestCopyEndsWithThePeersError(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 1<<20)
	must(t, w.Append(results.KindStdout, 1, []byte("hello")))
	gone := errors.New("peer gone")
	r, err := l.Reader(id, 2)
	must(t, err)
	defer r.Close()
	if err := r.CopyRecords(t.Context(), failing{gone}, true); !errors.Is(err, gone) || r.Offset() != 2 {
		t.Errorf("%v, offset %d", err, r.Offset())
	}
	if _, err := r.Next(t.Context(), false); !errors.Is(err, gone) {
		t.Errorf("read on: %v", err)
	}
	again, err := l.Reader(id, r.Offset())
	must(t, err)
	defer again.Close()
	again.Flush = func() error { return gone }
	if _, err := again.CopyRaw(t.Context(), io.Discard, results.Both, true); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}
