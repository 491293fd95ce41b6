package wire_test

import (
	"bytes"
	"testing"

	"sandboxd/internal/wire"
)

// The corpora in testdata/fuzz hold lives, every refused shape and what fuzzing found.

func FuzzReaderFromInit(f *testing.F) {
	f.Add(life())
	f.Add(join(life(), life()))
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Fuzz(func(t *testing.T, b []byte) { fuzzReader(t, b, wire.SideInit) })
}

func FuzzReaderFromDaemon(f *testing.F) {
	f.Add(orders())
	f.Add(frame(wire.Header{Type: wire.TypeStart, Flags: wire.More, Seq: 1}, []byte(`{"argv":`)))
	f.Fuzz(func(t *testing.T, b []byte) { fuzzReader(t, b, wire.SideDaemon) })
}

// orders is what a daemon says over a whole job.
func orders() []byte {
	return join(
		frame(wire.Header{Type: wire.TypeStart, Flags: wire.More, Seq: 1}, []byte(`{"argv":"dHJ1ZQA=","env":"",`)),
		control(wire.TypeStart, 2, `"dir":"/","timeout_ms":1000,"finish_ms":0,"grace_ms":0}`),
		frame(wire.Header{Type: wire.TypeStdin, Seq: 3}, []byte("input")),
		frame(wire.Header{Type: wire.TypeStdin, Seq: 4}, nil),
		control(wire.TypeAck, 0, `{"seq":3}`),
		control(wire.TypeLease, 5, `{"remaining_ms":5}`),
		control(wire.TypeSignal, 6, `{"signo":15}`),
		control(wire.TypeCancel, 7, `{"grace_ms":0,"cause":"cancel"}`),
		control(wire.TypeEnd, 8, `{}`),
	)
}

// fuzzReader: no panic; what is taken is bounded; and the frames taken, written again, are the bytes that came.
func fuzzReader(t *testing.T, b []byte, from wire.Side) {
	for _, before := range []bool{true, false} {
		r := wire.NewReader(bytes.NewReader(b), from)
		if before {
			r.Establish(wire.Position{})
		}
		frames, _ := drain(r)
		rest := b
		for _, f := range frames {
			if f.Len > wire.MaxStart || int(f.Len) != len(f.Payload) || f.Type.From() != from {
				t.Fatalf("took %+v", f.Header)
			}
			decodeAny(f)
			if f.Type == wire.TypeStart {
				rest = nil // put together from several frames
			}
			if rest != nil {
				again := frame(f.Header, f.Payload)
				if !bytes.HasPrefix(rest, again) {
					t.Fatalf("read something else than came: %+v", f.Header)
				}
				rest = rest[len(again):]
			}
		}
	}
}

func decodeAny(f wire.Frame) {
	decoders := map[wire.Type]func(wire.Frame) error{
		wire.TypeHello: dec[wire.Hello], wire.TypeInitProof: dec[wire.InitProof], wire.TypeReady: dec[wire.Ready],
		wire.TypeStarted: dec[wire.Started], wire.TypeExited: dec[wire.Exited], wire.TypeHeartbeat: dec[wire.Heartbeat],
		wire.TypeStdinCredit: dec[wire.StdinCredit], wire.TypeWelcome: dec[wire.Welcome],
		wire.TypeChallenge: dec[wire.Challenge], wire.TypeDaemonProof: dec[wire.DaemonProof], wire.TypeStart: dec[wire.Start],
		wire.TypeSignal: dec[wire.Signal], wire.TypeCancel: dec[wire.Cancel], wire.TypeAck: dec[wire.Ack],
		wire.TypeEnd: dec[wire.End], wire.TypeLease: dec[wire.Lease],
	}
	if d := decoders[f.Type]; d != nil {
		_ = d(f)
	}
}

func dec[M wire.Message](f wire.Frame) error { _, err := wire.Decode[M](f); return err }

// FuzzDecode: a payload that is taken encodes to one that reads the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(readyJSON))
	f.Add([]byte(exitedJSON))
	f.Add([]byte(`{"argv":"dHJ1ZQA=","env":"QT1iAA==","dir":"/","timeout_ms":1000,"finish_ms":0,"grace_ms":0}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		same[wire.Ready](t, b)
		same[wire.Exited](t, b)
		same[wire.Start](t, b)
	})
}

func same[M wire.Message](t *testing.T, b []byte) {
	var zero M
	m, err := wire.Decode[M](wire.Frame{Header: wire.Header{Type: zero.Type()}, Payload: b})
	if err != nil {
		return
	}
	once, err := wire.Encode(m)
	if err != nil {
		t.Fatalf("taken, but does not encode: %v", err)
	}
	m2, err := wire.Decode[M](wire.Frame{Header: wire.Header{Type: zero.Type()}, Payload: once})
	if err != nil {
		t.Fatalf("encodes to what is refused: %v", err)
	}
	if twice, _ := wire.Encode(m2); !bytes.Equal(once, twice) {
		t.Fatalf("%s\n%s", once, twice)
	}
}
