package wire_test

import (
	"fmt"
	"io"
	"testing"

	"sandboxd/internal/wire"
)

// endless gives the same frame for ever, numbered on.
type endless struct {
	frame []byte
	seq   uint64
	off   int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.off == 0 {
		e.seq++
		h := wire.ParseHeader(e.frame)
		h.Seq = e.seq
		h.Put(e.frame)
	}
	n := copy(p, e.frame[e.off:])
	e.off = (e.off + n) % len(e.frame)
	return n, nil
}

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{64, 4 << 10, wire.MaxPayload} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := established(&endless{frame: frame(wire.Header{Type: wire.TypeStdin}, make([]byte, size))}, wire.SideDaemon)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSocket(b *testing.B) {
	for _, size := range []int{64, 4 << 10, wire.MaxPayload} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			from, to := socketPair(b)
			w, r := wire.NewWriter(from, wire.SideDaemon, nil), established(to, wire.SideDaemon)
			payload := make([]byte, size)
			done := make(chan error, 1)
			go func() {
				for {
					if _, err := r.Next(); err != nil {
						done <- err
						return
					}
				}
			}()
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if err := w.SendBytes(wire.TypeStdin, wire.StreamNone, payload); err != nil {
					b.Fatal(err)
				}
			}
			from.Close()
			if err := <-done; err != io.EOF {
				b.Fatal(err)
			}
		})
	}
}
