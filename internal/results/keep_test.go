package results_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
)

// stored is the room a reading took in the file after its gap, or in all.
type stored struct {
	before, after int64 // bytes of records, headers included, before and after the gap
	reading
}

func (m *model) stored(t *testing.T, l *results.Logs, id job.ID) stored {
	t.Helper()
	r, err := l.Reader(id, 0)
	must(t, err)
	defer r.Close()
	s := stored{}
	for {
		rec, err := r.Next(t.Context(), false)
		if err != nil {
			return s
		}
		m.record(t, rec, &s.reading)
		size := int64(results.HeaderSize + len(rec.Payload))
		switch {
		case rec.Kind == results.KindStdout || rec.Kind == results.KindStderr:
			if s.gaps == 0 {
				s.before += size
			} else {
				s.after += size
			}
		}
	}
}

// Output of every size around the places where the head ends, the ring is full, and the ring has turned is kept whole as
// long as it fits; after that the head and at least TailSize of the end are.
func TestHeadAndTailAreKeptAtEverySize(t *testing.T) {
	for keep, sizes := range map[int64][]int{
		3 << 20:                               {600, 7001, 64<<10 - 24, results.MaxPayload},
		2*results.RingSize + results.PageSize: {4096, results.MaxPayload - 24},
	} {
		head := keep - results.PageSize - results.RingSize
		for _, size := range sizes {
			t.Run(fmt.Sprintf("keep %d, records of %d", keep, size), func(t *testing.T) {
				l := newLogs(t)
				id, w := create(t, l, keep)
				m := &model{}
				rec := int64(size + results.HeaderSize)
				chunk := noise(uint64(size), size)
				for i := int64(0); i*rec < head+2*results.RingSize+2*rec; i++ {
					m.write(t, w, uint8(1+i%2), 1e18, chunk)
					if !near((i+1)*rec, rec, head, head+results.RingSize, head+2*results.RingSize) {
						continue
					}
					checkKept(t, m.stored(t, l, id), m, keep, rec)
				}
				_, err := w.Close(t.Context())
				must(t, err)
				checkKept(t, m.stored(t, l, id), m, keep, rec)
				if s := fileSize(t, l.Path(id)); s > keep {
					t.Fatalf("file of %d bytes, at most %d allowed", s, keep)
				}
			})
		}
	}
}

// near says whether at is about one of the places, and else now and then.
func near(at, step int64, places ...int64) bool {
	for _, p := range places {
		if d := p - at; d > -2*step && d < 2*step {
			return true
		}
	}
	return at/step%997 == 0
}

func checkKept(t *testing.T, s stored, m *model, keep, rec int64) {
	t.Helper()
	written := int64(len(m.bytes)) / (rec - results.HeaderSize) * rec
	room := keep - results.PageSize - 2*results.HeaderSize // where head and ring meet a record is split
	switch {
	case s.next != uint64(len(m.bytes)):
		t.Fatalf("read to %d of %d", s.next, len(m.bytes))
	case written <= room && s.gaps > 0:
		t.Fatalf("a gap of %d although %d of %d bytes are used", s.left, written, room)
	case s.gaps > 1:
		t.Fatalf("%d gaps", s.gaps)
	case s.gaps == 1 && s.after < results.TailSize:
		t.Fatalf("a tail of %d bytes after %d written", s.after, written)
	case s.gaps == 1 && s.before < keep-results.PageSize-results.RingSize-results.HeaderSize:
		t.Fatalf("a head of %d bytes", s.before)
	}
}

// A flood of one-byte lines costs little more room than its bytes, and the end of it is there.
func TestFloodOfTinyLinesIsNotMostlyHeaders(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 8<<20)
	m := &model{}
	for i := range 200_000 {
		m.write(t, w, results.KindStdout, int64(i)*1000, []byte("y\n"))
	}
	if size := fileSize(t, l.Path(id)); size > 410_000 {
		t.Errorf("400 000 bytes take %d in the file", size)
	}
	if got := m.check(t, l, id, 0); got.gaps > 0 || len(got.kept) != 400_000 {
		t.Errorf("%d gaps, %d bytes", got.gaps, len(got.kept))
	}
	_, err := w.Close(t.Context())
	must(t, err)
}

func TestKeepIsBounded(t *testing.T) {
	l := newLogs(t)
	for _, keep := range []int64{0, -1, results.MinKeep - 1, results.MaxKeep + 1, math.MaxInt64} {
		if _, err := l.Create(newID(t), results.Options{Keep: keep}); job.CodeOf(err) != job.CodeInvalid {
			t.Errorf("keep %d: %v, want code invalid", keep, err)
		}
	}
	if ids, err := l.List(); err != nil || len(ids) > 0 {
		t.Errorf("left %v, %v", ids, err)
	}
}

func TestInfoCountsWhatWasWrittenAndKept(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 2<<20)
	m := &model{}
	for i := range 100 {
		m.write(t, w, uint8(1+i%3/2), 1, noise(uint64(i), 50_000))
	}
	got := m.check(t, l, id, 0)
	info, err := w.Close(context.Background())
	must(t, err)
	want := job.StreamInfo{Bytes: 5_000_000, Kept: int64(5_000_000 - got.left), Truncated: true,
		Stdout: int64(len(m.of(1))), Stderr: int64(len(m.of(2))), SHA256: info.SHA256}
	if info != want || got.left == 0 {
		t.Errorf("%+v, want %+v", info, want)
	}
	if len(w.Tail()) != 16<<10 {
		t.Errorf("tail of %d bytes", len(w.Tail()))
	}
}

// The checksum of a large stream is made while it is written, and again from the file after a restart.
func TestChecksumOfALargeStream(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 64<<20)
	sum := sha256.New()
	for i := range 160 {
		p := noise(uint64(i), results.MaxPayload)
		sum.Write(p)
		must(t, w.Append(results.KindStdout, 1, p))
		if i == 100 {
			must(t, w.Detach())
			var err error
			w, err = l.Reopen(id, results.Options{Keep: 64 << 20})
			must(t, err)
		}
	}
	info, err := w.Close(t.Context())
	must(t, err)
	if want := hex.EncodeToString(sum.Sum(nil)); info.SHA256 != want || info.Truncated {
		t.Errorf("%+v, want sha256 %s", info, want)
	}
}
