package wire_test

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/wire"
)

// chunked gives its bytes in reads of the drawn sizes.
type chunked struct {
	data  []byte
	sizes []int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := min(len(p), len(c.data))
	if len(c.sizes) > 0 {
		n = min(n, c.sizes[0])
		c.sizes = c.sizes[1:]
	}
	copy(p, c.data[:n])
	c.data = c.data[n:]
	return n, nil
}

func TestWhatTheWriterSendsTheReaderReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sent bytes.Buffer
		clock := int64(0)
		w := wire.NewWriter(&sent, wire.SideDaemon, func() int64 { clock++; return clock })
		payloads := rapid.SliceOfN(rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, 100),
			rapid.Map(rapid.IntRange(0, wire.MaxPayload), func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, n) }),
		), 1, 12).Draw(t, "payloads")
		for _, p := range payloads {
			if err := w.SendBytes(wire.TypeStdin, wire.StreamNone, p); err != nil {
				t.Fatal(err)
			}
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 50_000), 0, 200).Draw(t, "reads")
		frames, err := drain(established(&chunked{data: sent.Bytes(), sizes: sizes}, wire.SideDaemon))
		if err != nil || len(frames) != len(payloads) {
			t.Fatalf("%d of %d frames, %v", len(frames), len(payloads), err)
		}
		for i, f := range frames {
			if !bytes.Equal(f.Payload, payloads[i]) || f.Seq != uint64(i+1) || f.Time != int64(i+1) {
				t.Fatalf("frame %d: %+v", i, f.Header)
			}
		}
	})
}

func TestLongStartIsSplitAndPutTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := bytes.Repeat([]byte{'x'}, rapid.IntRange(1, wire.MaxStart).Draw(t, "size"))
		var sent bytes.Buffer
		w := wire.NewWriter(&sent, wire.SideDaemon, nil)
		if err := w.SendBytes(wire.TypeStart, wire.StreamNone, payload); err != nil {
			t.Fatal(err)
		}
		if err := w.Send(wire.End{}); err != nil {
			t.Fatal(err)
		}
		frames, err := drain(established(&sent, wire.SideDaemon))
		if err != nil || len(frames) != 2 || !bytes.Equal(frames[0].Payload, payload) {
			t.Fatalf("%d frames, %v", len(frames), err)
		}
	})
}

func TestConcurrentSendersNeverMixFrames(t *testing.T) {
	a, b := socketPair(t)
	w := wire.NewWriter(a, wire.SideDaemon, nil)
	const senders, each = 8, 200
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			payload := bytes.Repeat([]byte{byte(i)}, 1+i*9000)
			for range each {
				if err := w.SendBytes(wire.TypeStdin, wire.StreamNone, payload); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		r := established(b, wire.SideDaemon)
		for range senders * each {
			f, err := r.Next()
			if err != nil {
				t.Error(err)
				b.Close()
				return
			}
			if len(bytes.Trim(f.Payload, string(f.Payload[:1]))) != 0 {
				t.Error("mixed payload")
			}
		}
	})
	wg.Wait()
}

func TestWriterRefusesWhatItMayNotSend(t *testing.T) {
	w := wire.NewWriter(io.Discard, wire.SideDaemon, nil)
	if err := w.SendBytes(wire.TypeStdin, wire.StreamNone, make([]byte, wire.MaxPayload+1)); err == nil {
		t.Error("too long a stdin frame was sent")
	}
	if err := w.SendBytes(wire.TypeOutput, wire.StreamStdout, []byte("x")); err == nil {
		t.Error("the daemon sent output")
	}
	if err := w.SendBytes(wire.TypeStart, wire.StreamNone, make([]byte, wire.MaxStart+1)); err == nil {
		t.Error("too long a start was sent")
	}
}

func TestStreamSumIsTheSameHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		cut := rapid.IntRange(0, len(p)).Draw(t, "cut")
		var whole, parts wire.StreamSum
		whole.Add(p)
		parts.Add(p[:cut])
		parts.Add(p[cut:])
		if whole != parts {
			t.Fatalf("%+v, %+v", whole, parts)
		}
	})
}
