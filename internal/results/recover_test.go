package results_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"sandboxd/internal/results"
)

// A file cut at any byte opens, gives a beginning of what was written, and takes more.
func TestReopenAtAnyCut(t *testing.T) {
	dir := t.TempDir()
	l := results.New(dir)
	id, w := create(t, l, results.MinKeep)
	m := &model{}
	for i := range 12 {
		m.write(t, w, uint8(1+i%3/2), int64(i)*6e6, noise(uint64(i), 5+i*13))
	}
	w.Crash()
	must(t, l.Close())
	whole, err := os.ReadFile(l.Path(id))
	must(t, err)
	for cut := len(whole); cut >= 0; cut-- {
		if cut < results.PageSize-3 && cut%512 > 1 {
			continue
		}
		must(t, os.WriteFile(l.Path(id), whole[:cut], 0o600))
		l := results.New(dir)
		l.FailSync(nil)
		w, err := l.Reopen(id, results.Options{Keep: results.MinKeep})
		must(t, err)
		out, errs := w.Sums()
		n := int(out.Bytes + errs.Bytes)
		if n > max(cut-results.PageSize, 0) {
			t.Fatalf("cut at %d: %d bytes", cut, n)
		}
		part := &model{bytes: bytes.Clone(m.bytes[:n]), kinds: bytes.Clone(m.kinds[:n])}
		part.write(t, w, results.KindStderr, 1e9, []byte("after"))
		_, err = w.Close(t.Context())
		must(t, err)
		if got := part.check(t, l, id, 0); !got.ended || got.gaps > 0 {
			t.Fatalf("cut at %d: ended %t, %d gaps", cut, got.ended, got.gaps)
		}
		must(t, l.Close())
	}
}

// A file whose ring had turned and that lost its end keeps what it can; the counts, which the page holds, stay right.
func TestReopenOfATurnedRingThatWasCut(t *testing.T) {
	dir := t.TempDir()
	l := results.New(dir)
	id, w := create(t, l, results.MinKeep)
	m := prepared(40, 9000)
	m.play(t, w)
	out, errs := w.Sums()
	w.Crash()
	must(t, l.Close())
	whole, err := os.ReadFile(l.Path(id))
	must(t, err)
	for cut := len(whole) - 1; cut >= results.PageSize; cut -= 997 {
		must(t, os.WriteFile(l.Path(id), whole[:cut], 0o600))
		l := results.New(dir)
		l.FailSync(nil)
		w, err := l.Reopen(id, results.Options{Keep: results.MinKeep})
		must(t, err)
		if o, e := w.Sums(); o != out || e != errs {
			t.Fatalf("cut at %d: sums %+v %+v, want %+v %+v", cut, o, e, out, errs)
		}
		part := &model{bytes: bytes.Clone(m.bytes), kinds: bytes.Clone(m.kinds)}
		part.write(t, w, results.KindStderr, 1e18, noise(3, 30_000))
		info, err := w.Close(t.Context())
		must(t, err)
		got := part.check(t, l, id, 0)
		if got.gaps != 1 || !got.ended || info.Kept != int64(len(got.kept)) || !info.Truncated {
			t.Fatalf("cut at %d: %d gaps, ended %t, %d kept, %+v", cut, got.gaps, got.ended, len(got.kept), info)
		}
		must(t, l.Close())
	}
}

// What older output left behind the end of a turned ring is never taken for a record, whatever the job made it look like.
func TestForgedRecordsBehindTheEndAreIgnored(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, results.MinKeep)
	m := prepared(40, 9000)
	m.play(t, w)
	out, errs := w.Sums()
	f, err := os.OpenFile(l.Path(id), os.O_WRONLY, 0)
	must(t, err)
	place, forged := w.Forge([]byte("forged"))
	_, err = f.WriteAt(forged, place)
	must(t, errors.Join(err, f.Close()))
	w.Crash()
	w, err = l.Reopen(id, results.Options{Keep: results.MinKeep})
	must(t, err)
	if o, e := w.Sums(); o != out || e != errs {
		t.Errorf("sums %+v %+v, want %+v %+v", o, e, out, errs)
	}
	m.check(t, l, id, 0)
}

// Without a sound page the records up to the first that is not one are found again; but a reader does not guess.
func TestPageIsLost(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 1<<20)
	m := prepared(10, 3000)
	m.play(t, w)
	w.Crash()
	f, err := os.OpenFile(l.Path(id), os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(make([]byte, results.PageSize), 0)
	must(t, errors.Join(err, f.Close()))
	if _, err := l.Reader(id, 0); !errors.Is(err, results.ErrCorrupt) {
		t.Errorf("reader: %v, want %v", err, results.ErrCorrupt)
	}
	w, err = l.Reopen(id, results.Options{Keep: 1 << 20})
	must(t, err)
	m.write(t, w, results.KindStdout, 1, []byte("more"))
	if got := m.check(t, l, id, 0); !bytes.Equal(got.kept, m.bytes) {
		t.Errorf("%d of %d bytes", len(got.kept), len(m.bytes))
	}
}

// A follower that was attached before the daemon's Writer goes on over its end and the next one's beginning.
func TestFollowerOutlivesTheWriter(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, results.MinKeep)
	m := prepared(30, 3000)
	r, err := l.Reader(id, 0)
	must(t, err)
	defer r.Close()
	done := m.follow(t, r)
	half := &model{bytes: m.bytes[:len(m.bytes)/2], kinds: m.kinds[:len(m.bytes)/2]}
	half.play(t, w)
	must(t, w.Detach())
	if err := w.Append(results.KindStdout, 1, []byte("x")); !errors.Is(err, results.ErrClosed) {
		t.Errorf("append after detach: %v", err)
	}
	w, err = l.Reopen(id, results.Options{Keep: results.MinKeep})
	must(t, err)
	rest := &model{bytes: m.bytes[len(half.bytes):], kinds: m.kinds[len(half.bytes):]}
	rest.play(t, w)
	_, err = w.Close(t.Context())
	must(t, err)
	if got := <-done; !got.ended {
		t.Error("the follower did not see the end")
	}
}

// A log that a killed daemon left is readable before anybody reopens it, and by who waits for that.
func TestReaderOfAnAbandonedStream(t *testing.T) {
	dir := t.TempDir()
	l := results.New(dir)
	id, w := create(t, l, 1<<20)
	m := prepared(10, 3000)
	m.play(t, w)
	w.Crash()
	must(t, l.Close())
	l = results.New(dir)
	defer l.Close()
	if got := m.check(t, l, id, 0); got.ended || got.next != uint64(len(m.bytes)) {
		t.Errorf("ended %t at %d of %d", got.ended, got.next, len(m.bytes))
	}
	r, err := l.Reader(id, 0)
	must(t, err)
	defer r.Close()
	done := m.follow(t, r)
	w, err = l.Reopen(id, results.Options{Keep: 1 << 20})
	must(t, err)
	_, err = w.Close(t.Context())
	must(t, err)
	if got := <-done; !got.ended || !bytes.Equal(got.kept, m.bytes) {
		t.Errorf("ended %t, %d of %d bytes", got.ended, len(got.kept), len(m.bytes))
	}
}

func TestTailSurvivesARestart(t *testing.T) {
	for _, keep := range []int64{results.MinKeep, 8 << 20} {
		dir := t.TempDir()
		l := results.New(dir)
		id, w := create(t, l, keep)
		m := prepared(60, 9000)
		m.play(t, w)
		before := w.Tail()
		if !bytes.HasSuffix(m.of(results.KindStdout), before) || len(before) != 16<<10 {
			t.Fatalf("tail of %d bytes", len(before))
		}
		for _, end := range []bool{false, true} {
			if end {
				_, err := w.Close(t.Context())
				must(t, err)
			}
			w.Crash()
			var err error
			w, err = l.Reopen(id, results.Options{Keep: keep})
			must(t, err)
			got := w.Tail()
			if !bytes.HasSuffix(before, got) || len(got) < min(len(before), int(keep/16)) { // a small ring holds less
				t.Errorf("keep %d, ended %t: %d other bytes after a restart", keep, end, len(got))
			}
		}
		must(t, l.Close())
	}
}

// Somebody truncates the file under a live follower (trial 20): it ends with an error instead of waiting for ever.
func TestFileCutUnderAFollower(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 4<<20)
	r, err := l.Reader(id, 0)
	must(t, err)
	defer r.Close()
	must(t, w.Append(results.KindStdout, 1, noise(1, 9000)))
	must(t, os.Truncate(l.Path(id), 0))
	must(t, w.Append(results.KindStdout, 1, noise(2, 9000)))
	if _, err := r.Next(t.Context(), true); !errors.Is(err, results.ErrCorrupt) {
		t.Errorf("%v, want %v", err, results.ErrCorrupt)
	}
}
