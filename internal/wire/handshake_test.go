package wire_test

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

func identity() wire.Identity {
	return wire.Identity{Instance: "inst", Slot: "slot-1", Epoch: 3, Key: wire.NewKey()}
}

// pair is both ends of one connection, under a deadline.
func pair(t *testing.T) (init, daemon *wire.Conn) {
	a, b := socketPair(t)
	init, daemon = wire.NewConn(a, wire.SideInit), wire.NewConn(b, wire.SideDaemon)
	for _, c := range []*wire.Conn{init, daemon} {
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	return init, daemon
}

// both runs the two ends at once; an end that failed closes its connection, as real ends do.
func both(init, daemon *wire.Conn, initSide, daemonSide func() error) (initErr, daemonErr error) {
	var wg sync.WaitGroup
	run := func(c *wire.Conn, f func() error, err *error) {
		wg.Go(func() {
			if *err = f(); *err != nil {
				c.Close()
			}
		})
	}
	run(init, initSide, &initErr)
	run(daemon, daemonSide, &daemonErr)
	wg.Wait()
	return initErr, daemonErr
}

func TestFreshHandshakeGivesInitItsIdentity(t *testing.T) {
	for _, slot := range []string{"", "slot-1"} {
		id := identity()
		init, daemon := pair(t)
		var got wire.Identity
		ie, de := both(init, daemon,
			func() (err error) { got, err = wire.ConnectFresh(init, slot); return err },
			func() error { return wire.AcceptFresh(daemon, id) })
		if ie != nil || de != nil || got != id {
			t.Errorf("slot %q: %v, %v, %+v", slot, ie, de, got)
		}
	}
}

func TestResumeHandshakeTellsBothWhereToGoOn(t *testing.T) {
	id := identity()
	later := id
	later.Epoch = 4
	init, daemon := pair(t)
	var epoch, last uint64
	var held wire.Held
	want := wire.Held{Started: true, StdinGot: 1 << 33, StdinEOF: true}
	ie, de := both(init, daemon,
		func() (err error) { epoch, last, err = wire.ConnectResume(init, id, want); return err },
		func() (err error) {
			held, err = wire.AcceptResume(daemon, later, wire.Position{Seq: 41, Stage: wire.StageStarted})
			return err
		})
	if ie != nil || de != nil || epoch != 4 || last != 41 || held != want {
		t.Fatalf("%v, %v, epoch %d, last %d, %+v", ie, de, epoch, last, held)
	}
	if err := init.WriteEncoded(output(42, "x")); err != nil {
		t.Fatal(err)
	}
	if f, err := daemon.Next(); err != nil || f.Seq != 42 {
		t.Errorf("%+v, %v", f.Header, err)
	}
}

func TestHandshakeRefuses(t *testing.T) {
	id := identity()
	other := func(change func(*wire.Identity)) wire.Identity { o := id; change(&o); return o }
	fresh := func(c *wire.Conn) error { _, err := wire.ConnectFresh(c, ""); return err }
	resume := func(as wire.Identity) func(*wire.Conn) error {
		return func(c *wire.Conn) error { _, _, err := wire.ConnectResume(c, as, wire.Held{}); return err }
	}
	takeFresh := func(c *wire.Conn) error { return wire.AcceptFresh(c, id) }
	takeResume := func(as wire.Identity) func(*wire.Conn) error {
		return func(c *wire.Conn) error { _, err := wire.AcceptResume(c, as, wire.Position{}); return err }
	}
	say := func(m wire.Message) func(*wire.Conn) error {
		return func(c *wire.Conn) error {
			if err := c.Send(m); err != nil {
				return err
			}
			_, err := c.Next()
			return err
		}
	}
	nonce := make([]byte, wire.NonceSize)
	tests := []struct {
		name             string
		init, daemon     func(*wire.Conn) error
		wantInit, wantDa error // nil = not looked at
	}{
		{"fresh where resume is due", fresh, takeResume(id), nil, wire.ErrOrder},
		{"resume where fresh is due", resume(id), takeFresh, nil, wire.ErrOrder},
		{"init of another slot", resume(other(func(i *wire.Identity) { i.Slot = "slot-2" })), takeResume(id), nil, wire.ErrIdentity},
		{"init of another instance", resume(other(func(i *wire.Identity) { i.Instance = "x" })), takeResume(id), nil, wire.ErrProof},
		{"init with another key", resume(other(func(i *wire.Identity) { i.Key[0] ^= 1 })), takeResume(id), nil, wire.ErrProof},
		{"older daemon", resume(other(func(i *wire.Identity) { i.Epoch = 9 })), takeResume(id), wire.ErrEpoch, nil},
		{"another product", say(wire.Hello{Product: "odek", Version: 1, Nonce: nonce}), takeFresh, nil, wire.ErrVersion},
		{"another version", say(wire.Hello{Product: wire.Product, Version: 2, Nonce: nonce}), takeFresh, nil, wire.ErrVersion},
		{"proof without hello", say(wire.InitProof{MAC: nonce}), takeFresh, nil, wire.ErrOrder},
		{"ready without hello", say(wire.Heartbeat{}), takeFresh, nil, wire.ErrOrder},
		{"orders before welcome", fresh, say(wire.End{}), wire.ErrOrder, nil},
		{"peer that leaves", func(*wire.Conn) error { return errors.New("leave") }, takeFresh, nil, io.EOF},
		{"peer that leaves init", fresh, func(*wire.Conn) error { return errors.New("leave") }, io.EOF, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			init, daemon := pair(t)
			ie, de := both(init, daemon, func() error { return tt.init(init) }, func() error { return tt.daemon(daemon) })
			if tt.wantInit != nil && !errors.Is(ie, tt.wantInit) && !isReset(ie) {
				t.Errorf("init: %v", ie)
			}
			if tt.wantDa != nil && !errors.Is(de, tt.wantDa) {
				t.Errorf("daemon: %v", de)
			}
		})
	}
}

// isReset: a unix socket that is closed with unread bytes, or written to after it was closed.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Probe 109: a peer without the key plays proofs back, on one connection and between two.
func TestReflectedProofsAreRefused(t *testing.T) {
	id := identity()
	t.Run("init's own proof played back to it", func(t *testing.T) {
		init, mallory := pair(t)
		ie, _ := both(init, mallory,
			func() error { _, _, err := wire.ConnectResume(init, id, wire.Held{}); return err },
			func() error {
				hello, err := mallory.Next()
				if err != nil {
					return err
				}
				h, err := wire.Decode[wire.Hello](hello)
				if err != nil {
					return err
				}
				if err := mallory.Send(wire.Challenge{Epoch: id.Epoch, Nonce: h.Nonce}); err != nil {
					return err
				}
				f, err := mallory.Next()
				if err != nil {
					return err
				}
				p, err := wire.Decode[wire.InitProof](f)
				if err != nil {
					return err
				}
				return mallory.Send(wire.DaemonProof{MAC: p.MAC})
			})
		if !errors.Is(ie, wire.ErrProof) {
			t.Error(ie)
		}
	})
	t.Run("the daemon never proves first", func(t *testing.T) {
		mallory, daemon := pair(t)
		nonce := make([]byte, wire.NonceSize)
		me, de := both(mallory, daemon,
			func() error {
				if err := mallory.Send(wire.Hello{Product: wire.Product, Version: wire.Version, Resume: true, Slot: id.Slot, Nonce: nonce}); err != nil {
					return err
				}
				f, err := mallory.Next()
				if err != nil {
					return err
				}
				ch, err := wire.Decode[wire.Challenge](f)
				if err != nil {
					return err
				}
				if err := mallory.Send(wire.InitProof{MAC: ch.Nonce}); err != nil {
					return err
				}
				f, err = mallory.Next()
				if err == nil {
					t.Errorf("got %s without the key", f.Type)
				}
				return err
			},
			func() error { _, err := wire.AcceptResume(daemon, id, wire.Position{}); return err })
		if me == nil || !errors.Is(de, wire.ErrProof) {
			t.Errorf("%v, %v", me, de)
		}
	})
}

func TestASilentPeerIsCutOffByTheDeadline(t *testing.T) {
	_, b := socketPair(t)
	daemon := wire.NewConn(b, wire.SideDaemon)
	if err := daemon.SetDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := wire.AcceptFresh(daemon, identity()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestAPeerOfOneByteAtATimeIsCutOffByTheDeadline(t *testing.T) {
	a, b := socketPair(t)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_, _ = a.Write([]byte{0})
			time.Sleep(3 * time.Millisecond)
		}
	})
	defer wg.Wait()
	defer stop()
	daemon := wire.NewConn(b, wire.SideDaemon)
	if err := daemon.SetDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if err := wire.AcceptFresh(daemon, identity()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}
