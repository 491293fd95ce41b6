package supervise_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sandboxd/internal/supervise"
	"sandboxd/internal/wire"
)

// ringModel is a ring with a daemon that remembers what it stored, and the bytes that went in.
type ringModel struct {
	t      *rapid.T
	ring   *supervise.Ring
	put    [3][]byte // by stream
	sent   bytes.Buffer
	reader *wire.Reader
	stored wire.Position
	got    [3][]byte
	clock  int64
	sealed bool
}

func newRingModel(t *rapid.T) *ringModel {
	m := &ringModel{t: t, ring: supervise.NewRing(192 << 10), clock: 1}
	m.connect()
	if m.ring.Control(wire.Ready{StubPID: 2}, 1) != nil || m.ring.Control(wire.Started{PID: 2}, 1) != nil {
		t.Fatal("no room in an empty ring")
	}
	return m
}

func (m *ringModel) connect() {
	m.sent.Reset()
	m.reader = wire.NewReader(&m.sent, wire.SideInit)
	m.reader.Establish(m.stored)
}

func (m *ringModel) output(t *rapid.T) {
	if m.sealed || !m.ring.HasRoom() {
		return
	}
	m.clock += rapid.Int64Range(0, 60e6).Draw(t, "later")
	room := m.ring.Reserve()[wire.HeaderSize:]
	n := rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, len(room)), rapid.Just(len(room))).Draw(t, "n")
	stream := rapid.Uint8Range(1, 2).Draw(t, "stream")
	for i := range n {
		room[i] = byte(len(m.put[stream]) + i*7 + i>>8)
	}
	m.put[stream] = append(m.put[stream], room[:n]...)
	m.ring.Commit(stream, n, m.clock)
}

// send moves frames to the daemon, which may store only some of them and ack fewer.
func (m *ringModel) send(t *rapid.T) {
	batch := m.ring.Take()
	if batch == nil {
		return
	}
	copied := bytes.Clone(batch)
	if m.stored.Seq > 0 && rapid.Bool().Draw(t, "ack while it is written") {
		m.ack(t)
	}
	if !bytes.Equal(copied, batch) {
		t.Fatal("frames changed while they were written")
	}
	m.ring.Wrote()
	m.sent.Write(batch)
	for range rapid.IntRange(0, 50).Draw(t, "read") {
		if !m.storeOne() {
			return
		}
	}
}

func (m *ringModel) storeOne() bool {
	f, err := m.reader.Next()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			m.t.Fatalf("daemon: %v", err)
		}
		m.reader = wire.NewReader(&m.sent, wire.SideInit)
		m.reader.Establish(m.stored)
		return false
	}
	if f.Type == wire.TypeOutput {
		m.got[f.Stream] = append(m.got[f.Stream], f.Payload...)
	}
	m.stored = m.reader.Position()
	return true
}

func (m *ringModel) ack(t *rapid.T) {
	if m.stored.Seq == 0 {
		return
	}
	seq := rapid.Uint64Range(1, m.stored.Seq).Draw(t, "seq")
	if err := m.ring.Ack(seq); err != nil {
		t.Fatalf("ack %d of %d: %v", seq, m.stored.Seq, err)
	}
}

func (m *ringModel) reconnect(*rapid.T) {
	if err := m.ring.Rewind(m.stored.Seq); err != nil {
		m.t.Fatalf("rewind to %d: %v", m.stored.Seq, err)
	}
	m.connect()
}

func (m *ringModel) finish() {
	if err := m.ring.Control(wire.Exited{}, m.clock); err != nil {
		m.t.Fatal(err)
	}
	for m.stored.Stage != wire.StageExited {
		batch := m.ring.Take()
		m.sent.Write(batch)
		m.ring.Wrote()
		more := false
		for m.storeOne() {
			more = true
		}
		if batch == nil && !more {
			m.t.Fatalf("nothing more to send at %+v", m.stored)
		}
		if err := m.ring.Ack(m.stored.Seq); err != nil {
			m.t.Fatal(err)
		}
	}
	for s := range m.put {
		if !bytes.Equal(m.put[s], m.got[s]) {
			m.t.Fatalf("stream %d: put %d bytes, got %d", s, len(m.put[s]), len(m.got[s]))
		}
	}
}

func TestRingLosesNothingWhateverTheDaemonDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newRingModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"output": m.output, "output again": m.output, "send": m.send, "ack": m.ack, "reconnect": m.reconnect,
		})
		m.finish()
	})
}

func TestRingRefusesAcksAndResumesOfWhatItNeverSent(t *testing.T) {
	r := supervise.NewRing(192 << 10)
	for range 3 {
		if err := r.Control(wire.Ready{StubPID: 2}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Ack(1); !errors.Is(err, wire.ErrSequence) {
		t.Errorf("ack before it was sent: %v", err)
	}
	r.Take()
	r.Wrote()
	if err := errors.Join(r.Ack(3), r.Ack(2)); err != nil {
		t.Error(err)
	}
	if err := r.Rewind(2); !errors.Is(err, wire.ErrResume) {
		t.Errorf("rewind to what is gone: %v", err)
	}
	if err := r.Rewind(4); !errors.Is(err, wire.ErrResume) {
		t.Errorf("rewind to what never was: %v", err)
	}
	if err := r.Rewind(3); err != nil {
		t.Error(err)
	}
}

func TestFullRingStillTakesControlFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newRingModel(t)
		t.Repeat(map[string]func(*rapid.T){"output": m.output, "send": m.send, "ack": m.ack})
		for m.ring.HasRoom() {
			m.output(t) // until nothing fits
		}
		big := wire.Exited{StartError: &wire.StartError{Op: wire.OpExec, Text: string(bytes.Repeat([]byte("<"), 8000))}}
		if err := m.ring.Control(big, m.clock); err != nil {
			t.Fatal(err)
		}
	})
}

func TestReserveWaitsForAnAckOrTheEnd(t *testing.T) {
	r := supervise.NewRing(192 << 10)
	for r.HasRoom() {
		r.Commit(1, len(r.Reserve())-wire.HeaderSize, 1)
	}
	got := make(chan []byte, 1)
	go func() { got <- r.Reserve() }()
	select {
	case <-got:
		t.Fatal("room in a full ring")
	case <-time.After(20 * time.Millisecond):
	}
	r.Take()
	r.Wrote()
	if err := r.Ack(1); err != nil {
		t.Fatal(err)
	}
	if len(<-got) == 0 {
		t.Error("no room after the ack")
	}
	for r.HasRoom() {
		r.Commit(1, len(r.Reserve())-wire.HeaderSize, 1)
	}
	go func() { got <- r.Reserve() }()
	time.Sleep(5 * time.Millisecond)
	r.Close()
	if <-got != nil {
		t.Error("room in a closed ring")
	}
}
