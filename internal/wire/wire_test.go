package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// frame encodes one frame without any check, as a hostile peer would.
func frame(h wire.Header, payload []byte) []byte {
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(payload))
	if h.Len == 0 {
		h.Len = uint32(len(payload))
	}
	h.Put(b)
	return append(b, payload...)
}

func control(t wire.Type, seq uint64, json string) []byte {
	return frame(wire.Header{Type: t, Seq: seq}, []byte(json))
}

func output(seq uint64, text string) []byte {
	return frame(wire.Header{Type: wire.TypeOutput, Stream: wire.StreamStdout, Seq: seq}, []byte(text))
}

const (
	readyJSON  = `{"stub_pid":7,"uid":1000,"gid":1000}`
	exitedJSON = `{"code":0,"signal":0,"left_killed":0,"stdout":{"bytes":0,"crc32c":0},"stderr":{"bytes":0,"crc32c":0},` +
		`"wall_ns":1,"rusage":{"user_ns":0,"sys_ns":0,"max_rss_kib":0}}`
	startedJSON = `{"pid":7,"at_ns":1}`
)

// life is a whole job as init sends it.
func life() []byte {
	return join(
		control(wire.TypeReady, 1, readyJSON),
		control(wire.TypeHeartbeat, 0, `{}`),
		control(wire.TypeStarted, 2, startedJSON),
		output(3, "hello "),
		control(wire.TypeStdinCredit, 0, `{"bytes":9}`),
		output(4, "world"),
		control(wire.TypeExited, 5, exitedJSON),
	)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// established reads frames of a side whose handshake is over.
func established(src io.Reader, from wire.Side) *wire.Reader {
	r := wire.NewReader(src, from)
	r.Establish(wire.Position{})
	return r
}

// drain reads until an error, and returns the copied messages and the error; io.EOF becomes nil.
func drain(r *wire.Reader) ([]wire.Frame, error) {
	var all []wire.Frame
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		f.Payload = bytes.Clone(f.Payload)
		all = append(all, f)
	}
}

// socketPair is a connected pair of unix stream sockets.
func socketPair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]net.Conn, 2)
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		if conns[i], err = net.FileConn(file); err != nil {
			t.Fatal(err)
		}
		file.Close()
		t.Cleanup(func() { conns[i].Close() })
	}
	return conns[0], conns[1]
}
