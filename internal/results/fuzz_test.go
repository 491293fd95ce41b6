package results_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
)

// FuzzHostileFile reads and reopens files that hold anything: a page that claims anything under a checksum that holds, and
// records that are none. Nothing may hang, panic, or give records that do not follow each other.
func FuzzHostileFile(f *testing.F) {
	l := results.New(f.TempDir())
	id, w := create(f, l, results.MinKeep)
	for i := range 30 {
		must(f, w.Append(uint8(1+i%2), int64(i)*1e7, noise(uint64(i), 10+i*i)))
	}
	w.Crash()
	whole, err := os.ReadFile(l.Path(id))
	must(f, err)
	must(f, l.Close())
	body := whole[results.PageSize:]
	f.Add(body, []byte{0, 0, 0, 0}, uint16(0))
	f.Add(body[:1000], []byte{0, 200, 100, 40}, uint16(50))
	f.Add(body, []byte{0, 255, 255, 255, 0, 100, 20, 80, 10, 1}, uint16(9))
	f.Add([]byte{}, []byte{}, uint16(1))
	f.Fuzz(func(t *testing.T, body, claims []byte, from uint16) {
		l := results.New(t.TempDir())
		defer l.Close()
		l.FailSync(nil) // the disk does not matter here, and is slow
		id := newID(t)
		must(t, os.MkdirAll(filepath.Dir(l.Path(id)), 0o700))
		must(t, os.WriteFile(l.Path(id), append(hostilePage(claims), body...), 0o600))
		for _, reopen := range []bool{false, true, true} {
			if reopen {
				w, err := l.Reopen(id, results.Options{Keep: results.MinKeep})
				if err != nil {
					return
				}
				_ = w.Append(results.KindStdout, 1, []byte("more"))
				if len(claims)%2 == 0 {
					_, _ = w.Close(t.Context())
				} else {
					must(t, w.Detach())
				}
			}
			for _, at := range []uint64{0, uint64(from), uint64(from) * 7919} {
				readHostile(t, l, id, at)
			}
		}
	})
}

// hostilePage makes a page of which each claim is a number of one, two or eight bytes.
func hostilePage(claims []byte) []byte {
	page := make([]byte, results.PageSize)
	var slot [512]byte
	var v []uint64
	for i, c := range claims {
		x := uint64(c)
		switch i % 3 {
		case 1:
			x = x<<8 | uint64(c)
		case 2:
			x = x * x * x
		}
		v = append(v, x)
	}
	results.SetSlot(&slot, 1, v)
	copy(page[512:], slot[:])
	return page
}

func readHostile(t *testing.T, l *results.Logs, id job.ID, from uint64) {
	r, err := l.Reader(id, from)
	if err != nil {
		return
	}
	defer r.Close()
	next, n := from, 0
	for {
		rec, err := r.Next(context.Background(), false)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, results.ErrCorrupt) {
				t.Fatalf("%v", err)
			}
			return
		}
		if n++; n > 1<<20 {
			t.Fatal("more records than bytes")
		}
		if rec.Kind == results.KindEnd {
			continue
		}
		if rec.Offset != next || len(rec.Payload) == 0 {
			t.Fatalf("record at %d of %d bytes, want it at %d", rec.Offset, len(rec.Payload), next)
		}
		if rec.Kind == results.KindGap {
			next += rec.Missing()
		} else {
			next += uint64(len(rec.Payload))
		}
	}
}
