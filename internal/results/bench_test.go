package results_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"sandboxd/internal/results"
)

func benchAppend(b *testing.B, size int, keep int64) {
	l := results.New(b.TempDir())
	defer l.Close()
	p := noise(1, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var w *results.Writer
	left := int64(0)
	for i := int64(0); b.Loop(); i++ {
		if left < int64(size+results.HeaderSize) { // a new stream before the ring turns, when keep is large
			b.StopTimer()
			if w != nil {
				w.Crash()
				ids, err := l.List()
				must(b, err)
				must(b, l.Remove(ids[0]))
			}
			_, w = create(b, l, keep)
			left = keep
			if keep < 16<<20 {
				left = 1 << 62
			}
			b.StartTimer()
		}
		must(b, w.Append(results.KindStdout, i*1000, p))
		left -= int64(size + results.HeaderSize)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 1 << 10, 32 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("%d into the head", size), func(b *testing.B) { benchAppend(b, size, 1<<30) })
		b.Run(fmt.Sprintf("%d into the ring", size), func(b *testing.B) { benchAppend(b, size, 4<<20) })
	}
}

// BenchmarkCopy is one pass over 256 MiB to a peer that takes anything.
func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{1 << 10, 256 << 10} {
		l := results.New(b.TempDir())
		id, w := create(b, l, 1<<30)
		p := noise(1, size)
		for i := range (256 << 20) / size {
			must(b, w.Append(uint8(1+i%2), int64(i), p))
		}
		pass := func(name string, copy func(*results.Reader) error) {
			b.Run(fmt.Sprintf("%s of %d", name, size), func(b *testing.B) {
				b.SetBytes(256 << 20)
				b.ReportAllocs()
				for b.Loop() {
					r, err := l.Reader(id, 0)
					must(b, err)
					must(b, copy(r))
					must(b, r.Close())
				}
			})
		}
		type sink struct{ io.Writer }
		pass("records", func(r *results.Reader) error { return r.CopyRecords(context.Background(), sink{io.Discard}, false) })
		pass("raw", func(r *results.Reader) error {
			_, err := r.CopyRaw(context.Background(), sink{io.Discard}, results.Both, false)
			return err
		})
		pass("stdout", func(r *results.Reader) error {
			_, err := r.CopyRaw(context.Background(), sink{io.Discard}, results.OnlyStdout, false)
			return err
		})
		must(b, l.Close())
	}
}

// BenchmarkShortJob is all that the stream of a job with one line of output costs.
func BenchmarkShortJob(b *testing.B) {
	l := results.New(b.TempDir())
	defer l.Close()
	for b.Loop() {
		id, w := create(b, l, 16<<20)
		must(b, w.Append(results.KindStdout, 1, []byte("hello\n")))
		_, err := w.Close(context.Background())
		must(b, err)
		must(b, l.Remove(id))
	}
}
