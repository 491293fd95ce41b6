package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"sandboxd/internal/wire"
)

func TestReaderTakesAWholeLifeHoweverItIsCut(t *testing.T) {
	cuts := map[string]func(io.Reader) io.Reader{
		"at once":      func(r io.Reader) io.Reader { return r },
		"byte by byte": iotest.OneByteReader,
		"halves":       iotest.HalfReader,
		"data with eof": func(r io.Reader) io.Reader {
			return iotest.DataErrReader(r)
		},
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			r := established(cut(bytes.NewReader(life())), wire.SideInit)
			frames, err := drain(r)
			if err != nil || len(frames) != 7 {
				t.Fatalf("got %d frames, %v", len(frames), err)
			}
			if got := string(frames[3].Payload) + string(frames[5].Payload); got != "hello world" {
				t.Errorf("output %q", got)
			}
			if want := (wire.Position{Seq: 5, Stage: wire.StageExited}); r.Position() != want {
				t.Errorf("position %+v", r.Position())
			}
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	ready := control(wire.TypeReady, 1, readyJSON)
	started := control(wire.TypeStarted, 2, startedJSON)
	running := join(ready, started)
	head := func(h wire.Header) []byte { return frame(h, nil) }
	tests := []struct {
		name  string
		from  wire.Side
		bytes []byte
		want  wire.Reason
	}{
		{"length 2^32-1", wire.SideInit, join(running, head(wire.Header{Type: wire.TypeOutput, Stream: 1, Seq: 3, Len: math.MaxUint32})), wire.ErrLength},
		{"length of one above the most", wire.SideInit, join(running, head(wire.Header{Type: wire.TypeOutput, Stream: 1, Seq: 3, Len: wire.MaxPayload + 1})), wire.ErrLength},
		{"control longer than its kind", wire.SideInit, head(wire.Header{Type: wire.TypeReady, Seq: 1, Len: 16<<10 + 1}), wire.ErrLength},
		{"empty output", wire.SideInit, join(running, output(3, "")), wire.ErrLength},
		{"all ones", wire.SideInit, bytes.Repeat([]byte{0xff}, 64), wire.ErrType},
		{"all zeroes", wire.SideInit, make([]byte, 64), wire.ErrType},
		{"type nobody defined", wire.SideInit, control(0x3f, 0, "{}"), wire.ErrType},
		{"order from init", wire.SideInit, control(wire.TypeStart, 1, "{}"), wire.ErrDirection},
		{"ack from init", wire.SideInit, control(wire.TypeAck, 0, `{"seq":1}`), wire.ErrDirection},
		{"output from the daemon", wire.SideDaemon, output(1, "x"), wire.ErrDirection},
		{"stream 3", wire.SideInit, join(running, frame(wire.Header{Type: wire.TypeOutput, Stream: 3, Seq: 3}, []byte("x"))), wire.ErrStream},
		{"output of no stream", wire.SideInit, join(running, frame(wire.Header{Type: wire.TypeOutput, Seq: 3}, []byte("x"))), wire.ErrStream},
		{"stream on control", wire.SideInit, frame(wire.Header{Type: wire.TypeReady, Stream: 1, Seq: 1}, []byte(readyJSON)), wire.ErrStream},
		{"more on output", wire.SideInit, join(running, frame(wire.Header{Type: wire.TypeOutput, Stream: 1, Flags: wire.More, Seq: 3}, []byte("x"))), wire.ErrFlags},
		{"unknown flag", wire.SideDaemon, frame(wire.Header{Type: wire.TypeStart, Flags: 2, Seq: 1}, []byte("{}")), wire.ErrFlags},
		{"negative time", wire.SideInit, frame(wire.Header{Type: wire.TypeReady, Seq: 1, Time: math.MinInt64}, []byte(readyJSON)), wire.ErrTime},
		{"sequence starts at 2", wire.SideInit, control(wire.TypeReady, 2, readyJSON), wire.ErrSequence},
		{"sequence skips", wire.SideInit, join(running, output(4, "x")), wire.ErrSequence},
		{"sequence repeats", wire.SideInit, join(running, output(2, "x")), wire.ErrSequence},
		{"sequence 2^64-1", wire.SideInit, join(running, output(math.MaxUint64, "x")), wire.ErrSequence},
		{"numbered without a number", wire.SideInit, control(wire.TypeReady, 0, readyJSON), wire.ErrSequence},
		{"number on a heartbeat", wire.SideInit, control(wire.TypeHeartbeat, 1, "{}"), wire.ErrSequence},
		{"hello after the handshake", wire.SideInit, control(wire.TypeHello, 0, "{}"), wire.ErrOrder},
		{"welcome after the handshake", wire.SideDaemon, control(wire.TypeWelcome, 0, "{}"), wire.ErrOrder},
		{"ready twice", wire.SideInit, join(ready, control(wire.TypeReady, 2, readyJSON)), wire.ErrOrder},
		{"started without ready", wire.SideInit, control(wire.TypeStarted, 1, startedJSON), wire.ErrOrder},
		{"output before started", wire.SideInit, join(ready, output(2, "x")), wire.ErrOrder},
		{"started twice", wire.SideInit, join(running, control(wire.TypeStarted, 3, startedJSON)), wire.ErrOrder},
		{"exited first", wire.SideInit, control(wire.TypeExited, 1, exitedJSON), wire.ErrOrder},
		{"output after exited", wire.SideInit, join(running, control(wire.TypeExited, 3, exitedJSON), output(4, "x")), wire.ErrOrder},
		{"exited twice", wire.SideInit, join(running, control(wire.TypeExited, 3, exitedJSON), control(wire.TypeExited, 4, exitedJSON)), wire.ErrOrder},
		{"half a header", wire.SideInit, ready[:10], wire.ErrTruncated},
		{"half a payload", wire.SideInit, ready[:len(ready)-1], wire.ErrTruncated},
		{"message that stops", wire.SideDaemon, frame(wire.Header{Type: wire.TypeStart, Flags: wire.More, Seq: 1}, []byte("{}")), wire.ErrTruncated},
		{"message cut by another", wire.SideDaemon, join(frame(wire.Header{Type: wire.TypeStart, Flags: wire.More, Seq: 1}, []byte("{}")), control(wire.TypeEnd, 2, "{}")), wire.ErrOrder},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := established(bytes.NewReader(tt.bytes), tt.from)
			_, err := drain(r)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			var fe *wire.FrameError
			if !errors.As(err, &fe) {
				t.Fatalf("%T is no FrameError", err)
			}
			if _, again := r.Next(); !errors.Is(again, tt.want) {
				t.Errorf("the error does not stick: %v", again)
			}
		})
	}
}

func TestReaderBeforeTheHandshakeTakesNothingElse(t *testing.T) {
	for _, b := range [][]byte{control(wire.TypeReady, 1, readyJSON), control(wire.TypeHeartbeat, 0, "{}"), output(1, "x")} {
		if _, err := wire.NewReader(bytes.NewReader(b), wire.SideInit).Next(); !errors.Is(err, wire.ErrOrder) {
			t.Errorf("type %d: %v", b[4], err)
		}
	}
}

func TestReaderResumesAtAPosition(t *testing.T) {
	r := wire.NewReader(bytes.NewReader(join(output(8, "a"), output(9, "b"))), wire.SideInit)
	r.Establish(wire.Position{Seq: 7, Stage: wire.StageStarted})
	frames, err := drain(r)
	if err != nil || len(frames) != 2 {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
}

func TestLongMessageIsBounded(t *testing.T) {
	part := bytes.Repeat([]byte("x"), wire.MaxPayload)
	var all []byte
	for seq := range uint64(13) { // 3 MiB are 12 frames
		all = append(all, frame(wire.Header{Type: wire.TypeStart, Flags: wire.More, Seq: seq + 1}, part)...)
	}
	_, err := drain(established(bytes.NewReader(all), wire.SideDaemon))
	if !errors.Is(err, wire.ErrLength) {
		t.Fatal(err)
	}
}

func TestReaderRefusesBeforeItAllocates(t *testing.T) {
	bad := frame(wire.Header{Type: wire.TypeOutput, Stream: 1, Seq: 1, Len: math.MaxUint32}, nil)
	res := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = established(bytes.NewReader(bad), wire.SideInit).Next()
		}
	})
	if got := res.AllocedBytesPerOp(); got > 32<<10 {
		t.Errorf("%d bytes allocated for a refused frame", got)
	}
}

func TestReaderAllocatesNothingPerFrame(t *testing.T) {
	const frames = 1000
	stream := join(control(wire.TypeReady, 1, readyJSON), control(wire.TypeStarted, 2, startedJSON))
	big := strings.Repeat("x", 100<<10)
	for seq := uint64(3); seq < 2*frames+10; seq++ {
		text := "short"
		if seq == 3 {
			text = big
		}
		stream = append(stream, output(seq, text)...)
	}
	r := established(bytes.NewReader(stream), wire.SideInit)
	for range 3 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(frames, func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

func TestReaderDoesNotSpinOnAnEmptySource(t *testing.T) {
	if _, err := established(emptyReader{}, wire.SideInit).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Fatal(err)
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }
