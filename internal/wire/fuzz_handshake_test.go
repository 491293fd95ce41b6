package wire_test

import (
	"bytes"
	"net"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// scripted is a peer that says the same whatever it hears.
type scripted struct{ *bytes.Reader }

func (scripted) Write(p []byte) (int, error)      { return len(p), nil }
func (scripted) Close() error                     { return nil }
func (scripted) LocalAddr() net.Addr              { return nil }
func (scripted) RemoteAddr() net.Addr             { return nil }
func (scripted) SetDeadline(time.Time) error      { return nil }
func (scripted) SetReadDeadline(time.Time) error  { return nil }
func (scripted) SetWriteDeadline(time.Time) error { return nil }

// FuzzHandshake: who does not hold the key is never let in, on either side, and an identity is never half filled.
func FuzzHandshake(f *testing.F) {
	nonce := bytes.Repeat([]byte{1}, wire.NonceSize)
	for _, talk := range [][]wire.Message{
		{wire.Hello{Product: wire.Product, Version: wire.Version, Nonce: nonce}},
		{wire.Hello{Product: wire.Product, Version: wire.Version, Resume: true, Slot: "slot-1", Nonce: nonce}, wire.InitProof{MAC: nonce}},
	} {
		f.Add(said(f, wire.SideInit, talk))
	}
	for _, talk := range [][]wire.Message{
		{wire.Welcome{Instance: "inst", Slot: "slot-1", Epoch: 1, Key: nonce}},
		{wire.Challenge{Epoch: 9, Nonce: nonce}, wire.DaemonProof{MAC: nonce, LastSeq: 7}},
	} {
		f.Add(said(f, wire.SideDaemon, talk))
	}
	id := identity()
	id.Key = [wire.KeySize]byte{1, 2, 3} // the same in every worker
	f.Fuzz(func(t *testing.T, b []byte) {
		conn := func(side wire.Side) *wire.Conn { return wire.NewConn(scripted{bytes.NewReader(b)}, side) }
		if _, err := wire.AcceptResume(conn(wire.SideDaemon), id, wire.Position{}); err == nil {
			t.Error("init without the key was let in")
		}
		if _, _, err := wire.ConnectResume(conn(wire.SideInit), id, wire.Held{}); err == nil {
			t.Error("a daemon without the key was let in")
		}
		_ = wire.AcceptFresh(conn(wire.SideDaemon), id)
		if got, err := wire.ConnectFresh(conn(wire.SideInit), ""); err == nil && (got.Slot == "" || got.Instance == "" || got.Epoch == 0) {
			t.Errorf("%+v", got)
		}
	})
}

func said(f *testing.F, side wire.Side, talk []wire.Message) []byte {
	var b bytes.Buffer
	w := wire.NewWriter(&b, side, nil)
	for _, m := range talk {
		if err := w.Send(m); err != nil {
			f.Fatal(err)
		}
	}
	return b.Bytes()
}
