package results_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
)

// A follower opened before the first byte gets every byte in order, and the end.
func TestFollowerSeesAllOfAStreamThatFits(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 64<<20)
	m := prepared(200, 90_000)
	var wg sync.WaitGroup
	for _, from := range []uint64{0, 1, 4_000_000, uint64(len(m.bytes)) - 1, uint64(len(m.bytes)), uint64(len(m.bytes)) + 5} {
		r, err := l.Reader(id, from)
		must(t, err)
		wg.Go(func() {
			defer r.Close()
			got := m.drain(t, r, from, true)
			want := m.bytes[min(from, uint64(len(m.bytes))):]
			if got.gaps > 0 || !got.ended || !bytes.Equal(got.kept, want) {
				t.Errorf("from %d: %d gaps, ended %t, %d bytes; want %d", from, got.gaps, got.ended, len(got.kept), len(want))
			}
		})
	}
	m.play(t, w)
	_, err := w.Close(t.Context())
	must(t, err)
	wg.Wait()
}

// prepared makes the model of a stream before it is written, so that followers can compare meanwhile.
func prepared(n, most int) *model {
	m := &model{}
	for i := range n {
		m.add(uint8(1+i%2), noise(uint64(i), 1+i*7919%most))
	}
	return m
}

// play appends all of the model, in other pieces than it was made of.
func (m *model) play(t *testing.T, w *results.Writer) {
	t.Helper()
	for i := 0; i < len(m.bytes); {
		kind := m.kinds[i]
		n := bytes.IndexByte(m.kinds[i:], 3-kind)
		if n < 0 {
			n = len(m.bytes) - i
		}
		for n > 0 {
			k := min(n, 1+i%3001)
			must(t, w.Append(kind, int64(i), m.bytes[i:i+k]))
			i, n = i+k, n-k
		}
	}
}

// Followers of a stream whose ring turns all the time get nothing wrong: what they missed is a gap, the end is there.
func TestFollowersOfAFloodSeeGapsAndNeverWrongBytes(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, results.MinKeep)
	m := prepared(400, 60_000)
	var wg sync.WaitGroup
	for i := range 8 {
		from := uint64(i * 100_000)
		r, err := l.Reader(id, from)
		must(t, err)
		wg.Go(func() {
			defer r.Close()
			got := m.drain(t, r, from, true)
			if !got.ended || got.next != uint64(len(m.bytes)) {
				t.Errorf("ended %t at %d of %d", got.ended, got.next, len(m.bytes))
			}
		})
	}
	m.play(t, w)
	_, err := w.Close(t.Context())
	must(t, err)
	wg.Wait()
}

// A reader that reads nothing holds nobody up, and finds head, gap and end when it comes back.
func TestSlowReaderNeverSlowsTheWriter(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 4<<20)
	r, err := l.Reader(id, 0)
	must(t, err)
	defer r.Close()
	m := &model{}
	m.write(t, w, results.KindStdout, 1, []byte("first"))
	if rec, err := r.Next(t.Context(), true); err != nil || string(rec.Payload) != "first" {
		t.Fatalf("%q, %v", rec.Payload, err)
	}
	for i := range 200 {
		m.write(t, w, results.KindStdout, 2, noise(uint64(i), 200_000))
	}
	_, err = w.Close(t.Context())
	must(t, err)
	got := m.drain(t, r, 5, true)
	if got.gaps != 1 || !got.ended || !bytes.HasSuffix(m.bytes, got.kept[got.gapAt-5:]) {
		t.Errorf("%d gaps, ended %t", got.gaps, got.ended)
	}
}

// What is appended reaches a waiting follower at once, in a flood and after a pause.
func TestFollowerIsWokenPromptly(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 8<<20)
	r, err := l.Reader(id, 0)
	must(t, err)
	defer r.Close()
	worst := time.Duration(0)
	for i := range 200 {
		sent := time.Now()
		must(t, w.Append(results.KindStdout, sent.UnixNano(), []byte{'a', byte(i)}))
		rec, err := r.Next(t.Context(), true)
		must(t, err)
		if len(rec.Payload) != 2 || rec.Payload[1] != byte(i) {
			t.Fatalf("write %d came as %v", i, rec.Payload)
		}
		worst = max(worst, time.Since(sent))
		if i%20 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	t.Logf("slowest of 200: %v", worst)
	if worst > 500*time.Millisecond { // 20 ms on a machine that is not busy with other tests
		t.Errorf("a write took %v to reach a follower", worst)
	}
}

// A thousand followers that wait cost no buffers, and the Writer goes on at its pace.
func TestThousandFollowersAreCheap(t *testing.T) {
	l := newLogs(t)
	id, w := create(t, l, 16<<20)
	var wg sync.WaitGroup
	before := heap()
	for range 1000 {
		r, err := l.Reader(id, 0)
		must(t, err)
		wg.Go(func() {
			defer r.Close()
			n, err := r.CopyRaw(t.Context(), io.Discard, results.Both, true)
			if err != nil || n > 0 {
				t.Errorf("%v, %d missing", err, n)
			}
		})
	}
	start := time.Now()
	for i := range 300 {
		must(t, w.Append(results.KindStdout, int64(i), []byte("some line of output\n")))
		time.Sleep(100 * time.Microsecond)
	}
	took := time.Since(start)
	t.Logf("300 appends with 1000 followers: %v", took)
	perReader := (heap() - before) / 1000
	for start = time.Now(); perReader > 8<<10 && time.Since(start) < 10*time.Second; { // until all of them wait
		time.Sleep(20 * time.Millisecond)
		perReader = (heap() - before) / 1000
	}
	if t.Logf("%d bytes a follower", perReader); perReader > 8<<10 {
		t.Errorf("%d bytes a follower", perReader)
	}
	_, err := w.Close(t.Context())
	must(t, err)
	wg.Wait()
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one empties pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestReaderEndsWithItsContextOrItsStream(t *testing.T) {
	cause := errors.New("client gone")
	tests := []struct {
		name string
		end  func(*results.Logs, *results.Writer, job.ID, context.CancelCauseFunc) error
		want error
	}{
		{"context", func(_ *results.Logs, _ *results.Writer, _ job.ID, cancel context.CancelCauseFunc) error {
			cancel(cause)
			return nil
		}, cause},
		{"removed", func(l *results.Logs, w *results.Writer, id job.ID, _ context.CancelCauseFunc) error {
			return errors.Join(w.Detach(), l.Remove(id))
		}, results.ErrRemoved},
		{"daemon stops", func(l *results.Logs, _ *results.Writer, _ job.ID, _ context.CancelCauseFunc) error {
			return l.Close()
		}, results.ErrClosed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLogs(t)
			id, w := create(t, l, 1<<20)
			must(t, w.Append(results.KindStderr, 1, []byte("x")))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			r, err := l.Reader(id, 0)
			must(t, err)
			defer r.Close()
			_, err = r.Next(ctx, true)
			must(t, err)
			time.AfterFunc(10*time.Millisecond, func() {
				if err := tt.end(l, w, id, cancel); err != nil {
					t.Error(err)
				}
			})
			if _, err = r.Next(ctx, true); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// Attach, short output, end: five hundred times, nothing is missing (trial 18).
func TestShortStreamIsCompleteForItsFollower(t *testing.T) {
	l := newLogs(t)
	for range 500 {
		id, w := create(t, l, 1<<20)
		r, err := l.Reader(id, 0)
		must(t, err)
		var wg sync.WaitGroup
		var out bytes.Buffer
		wg.Go(func() {
			_, err := r.CopyRaw(t.Context(), &out, results.OnlyStdout, true)
			must(t, errors.Join(err, r.Close()))
		})
		must(t, w.Append(results.KindStdout, 1, []byte("x\n")))
		_, err = w.Close(t.Context())
		must(t, err)
		wg.Wait()
		if out.String() != "x\n" {
			t.Fatalf("got %q", out.String())
		}
		must(t, l.Remove(id))
	}
	if n := l.Streams(); n != 0 {
		t.Errorf("%d streams are still open", n)
	}
}
