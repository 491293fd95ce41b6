package results_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"go.uber.org/goleak"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
)

func TestMain(m *testing.M) {
	if os.Getenv(killEnv) != "" {
		writeUntilKilled()
	}
	goleak.VerifyTestMain(m)
}

// fataler is what testing.T, testing.B and rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newID(t fataler) job.ID {
	t.Helper()
	id, err := job.NewID()
	must(t, err)
	return id
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func create(t fataler, l *results.Logs, keep int64) (job.ID, *results.Writer) {
	t.Helper()
	id := newID(t)
	w, err := l.Create(id, results.Options{Keep: keep})
	must(t, err)
	return id, w
}

// model is what a command wrote, to compare with what readers get.
type model struct {
	bytes []byte
	kinds []byte // of each byte
}

// write appends p to the stream and the model.
func (m *model) write(t fataler, w *results.Writer, kind uint8, at int64, p []byte) {
	t.Helper()
	must(t, w.Append(kind, at, p))
	m.add(kind, p)
}

func (m *model) add(kind uint8, p []byte) {
	m.bytes = append(m.bytes, p...)
	m.kinds = append(m.kinds, bytes.Repeat([]byte{kind}, len(p))...)
}

func (m *model) of(kind uint8) []byte {
	out := make([]byte, 0, len(m.bytes))
	for i := 0; i < len(m.bytes); {
		n := len(m.kinds) - i
		if j := bytes.IndexByte(m.kinds[i:], 3-m.kinds[i]); j >= 0 {
			n = j
		}
		if m.kinds[i] == kind {
			out = append(out, m.bytes[i:i+n]...)
		}
		i += n
	}
	return out
}

// reading is what one pass over a stream gave.
type reading struct {
	gaps  int
	gapAt uint64 // offset of the last gap
	left  uint64 // bytes in gaps
	kept  []byte // payloads in their order, from the reader's first on
	next  uint64 // offset behind the last record
	ended bool
}

// check reads the stream from the byte from on until EOF and compares each record with the model.
func (m *model) check(t fataler, l *results.Logs, id job.ID, from uint64) reading {
	t.Helper()
	r, err := l.Reader(id, from)
	must(t, err)
	defer r.Close()
	return m.drain(t, r, from, false)
}

func (m *model) drain(t fataler, r *results.Reader, from uint64, follow bool) (got reading) {
	t.Helper()
	got.next = from
	for {
		rec, err := r.Next(context.Background(), follow)
		if errors.Is(err, io.EOF) {
			return got
		}
		must(t, err)
		m.record(t, rec, &got)
		if r.Offset() != got.next {
			t.Fatalf("reader says to resume at %d, its records end at %d", r.Offset(), got.next)
		}
	}
}

// follow drains r beside the test. The channel is closed without a reading when that failed.
func (m *model) follow(t *testing.T, r *results.Reader) <-chan reading {
	done := make(chan reading, 1)
	go func() {
		defer close(done)
		done <- m.drain(t, r, 0, true)
	}()
	return done
}

func (m *model) record(t fataler, rec results.Record, got *reading) {
	t.Helper()
	switch {
	case got.ended:
		t.Fatalf("record %d at %d after the end", rec.Kind, rec.Offset)
	case rec.Kind == results.KindEnd:
		got.ended = true
		if rec.Offset != uint64(len(m.bytes)) || len(rec.Payload) > 0 || rec.Time == 0 {
			t.Fatalf("end at %d of %d, payload %d, time %d", rec.Offset, len(m.bytes), len(rec.Payload), rec.Time)
		}
	case rec.Offset != got.next:
		t.Fatalf("record at %d, want %d", rec.Offset, got.next)
	case rec.Kind == results.KindGap:
		if rec.Missing() == 0 {
			t.Fatalf("empty gap at %d", rec.Offset)
		}
		got.gaps, got.gapAt, got.left, got.next = got.gaps+1, rec.Offset, got.left+rec.Missing(), got.next+rec.Missing()
	default:
		end := rec.Offset + uint64(len(rec.Payload))
		if len(rec.Payload) == 0 || end > uint64(len(m.bytes)) {
			t.Fatalf("record of %d bytes at %d, %d were written", len(rec.Payload), rec.Offset, len(m.bytes))
		}
		if !bytes.Equal(rec.Payload, m.bytes[rec.Offset:end]) {
			t.Fatalf("record at %d has other bytes than were written", rec.Offset)
		}
		if k := m.kinds[rec.Offset:end]; k[0] != rec.Kind || k[len(k)-1] != rec.Kind {
			t.Fatalf("record at %d is of kind %d, written as %d … %d", rec.Offset, rec.Kind, k[0], k[len(k)-1])
		}
		got.kept, got.next = append(got.kept, rec.Payload...), end
	}
}

func noise(seed uint64, n int) []byte {
	p := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = rng.Read(p)
	return p
}

func fileSize(t fataler, path string) int64 {
	t.Helper()
	fi, err := os.Stat(path)
	must(t, err)
	return fi.Size()
}

func newLogs(t *testing.T) *results.Logs {
	t.Helper()
	l := results.New(t.TempDir())
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}
