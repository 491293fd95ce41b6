package results_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
)

func TestLifeOfAStream(t *testing.T) {
	l := newLogs(t)
	id := newID(t)
	o := results.Options{Keep: 1 << 20}
	wantCode := func(step string, err error, want job.Code) {
		t.Helper()
		if err == nil || job.CodeOf(err) != want {
			t.Errorf("%s: %v, want code %s", step, err, want)
		}
	}
	_, err := l.Reader(id, 0)
	wantCode("read before it exists", err, job.CodeNotFound)
	_, err = l.Reopen(id, o)
	wantCode("reopen before it exists", err, job.CodeNotFound)
	_, err = l.Create("../../etc/passwd", o)
	wantCode("create under a bad id", err, job.CodeInvalid)
	must(t, l.Remove(id))

	w, err := l.Create(id, o)
	must(t, err)
	_, err = l.Create(id, o)
	wantCode("create twice", err, job.CodeConflict)
	_, err = l.Reopen(id, o)
	wantCode("two writers", err, job.CodeConflict)
	wantCode("remove while it is written", l.Remove(id), job.CodeConflict)
	wantCode("append a gap", w.Append(results.KindGap, 1, []byte("x")), job.CodeInvalid)
	wantCode("append too much", w.Append(results.KindStdout, 1, make([]byte, results.MaxPayload+1)), job.CodeInvalid)
	must(t, w.Append(results.KindStdout, 1, nil))
	if fi, err := os.Stat(l.Path(id)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}

	end(t, w)
	_, err = l.Create(id, o)
	wantCode("create over an ended one", err, job.CodeConflict)
	if ids, err := l.List(); err != nil || len(ids) != 1 || ids[0] != id {
		t.Errorf("list: %v, %v", ids, err)
	}
	must(t, l.Remove(id))
	_, err = l.Reader(id, 0)
	wantCode("read after remove", err, job.CodeNotFound)
	must(t, l.Close())
	_, err = l.Create(newID(t), o)
	wantCode("create after close", err, job.CodeUnavailable)
	if n := l.Streams(); n != 0 {
		t.Errorf("%d streams are still open", n)
	}
}

// end closes w in all the ways it may be asked to.
func end(t *testing.T, w *results.Writer) {
	t.Helper()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, w.Append(results.KindStdout, 1, []byte("x")))
	if _, err := w.Close(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("close under an ended context: %v", err)
	}
	info, err := w.Close(t.Context())
	must(t, err)
	if again, err := w.Close(gone); err != nil || again != info {
		t.Errorf("close again: %+v, %v", again, err)
	}
	if err := w.Append(results.KindStdout, 1, []byte("x")); !errors.Is(err, results.ErrEnded) || job.CodeOf(err) != job.CodeConflict {
		t.Errorf("append after the end: %v, want %v", err, results.ErrEnded)
	}
	must(t, w.Detach())
}

func TestListOfNothing(t *testing.T) {
	if ids, err := results.New(t.TempDir() + "/none").List(); err != nil || len(ids) > 0 {
		t.Errorf("%v, %v", ids, err)
	}
}

// A reader that is in the middle of a stream loses it at its next step, not its file under its feet.
func TestRemoveWhileReading(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 4<<20)
	for i := range 4 {
		must(t, w.Append(results.KindStdout, 1, noise(uint64(i), results.MaxPayload)))
	}
	_, err := w.Close(t.Context())
	must(t, err)
	r, err := l.Reader(id, 0)
	must(t, err)
	defer r.Close()
	rec, err := r.Next(t.Context(), true)
	must(t, err)
	must(t, l.Remove(id))
	if !bytes.Equal(rec.Payload, noise(0, results.MaxPayload)) {
		t.Error("the record in hand changed")
	}
	if _, err := r.Next(t.Context(), true); !errors.Is(err, results.ErrRemoved) || job.CodeOf(err) != job.CodeNotFound {
		t.Errorf("%v, want %v", err, results.ErrRemoved)
	}
	w, err = l.Create(id, results.Options{Keep: 1 << 20}) // the name is free
	must(t, err)
	_, err = w.Close(t.Context())
	must(t, err)
}
