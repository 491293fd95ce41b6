package wire_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"sandboxd/internal/wire"
)

func start(change func(*wire.Start)) wire.Start {
	m := wire.Start{Argv: []string{"true"}, Env: []string{"A=b"}, Dir: "/", TimeoutMS: 1000}
	change(&m)
	return m
}

func exited(change func(*wire.Exited)) wire.Exited {
	var m wire.Exited
	change(&m)
	return m
}

func TestMessagesOutOfBoundsAreRefusedByBothSides(t *testing.T) {
	nonce, key := make([]byte, wire.NonceSize), make([]byte, wire.KeySize)
	long := strings.Repeat("x", 200)
	tests := map[string]wire.Message{
		"hello without product":   wire.Hello{Version: 1, Nonce: nonce},
		"hello with short nonce":  wire.Hello{Product: "p", Version: 1, Nonce: nonce[1:]},
		"hello with long slot":    wire.Hello{Product: "p", Version: 1, Slot: long, Nonce: nonce},
		"hello of version 0":      wire.Hello{Product: "p", Nonce: nonce},
		"resume without slot":     wire.Hello{Product: "p", Version: 1, Resume: true, Nonce: nonce},
		"slot with newline":       wire.Hello{Product: "p", Version: 1, Slot: "a\nb", Nonce: nonce},
		"welcome without key":     wire.Welcome{Instance: "i", Slot: "s", Epoch: 1},
		"welcome of epoch 0":      wire.Welcome{Instance: "i", Slot: "s", Key: key},
		"ready of pid 1":          wire.Ready{StubPID: 1},
		"ready of pid 2^40":       wire.Ready{StubPID: 1 << 40},
		"ready with errno -1":     wire.Ready{StubPID: 2, Denied: map[string]int{"a": -1}},
		"started of pid 0":        wire.Started{},
		"started before time":     wire.Started{PID: 2, AtNS: -1},
		"code 256":                exited(func(m *wire.Exited) { m.Code = 256 }),
		"code -1":                 exited(func(m *wire.Exited) { m.Code = -1 }),
		"signal 65":               exited(func(m *wire.Exited) { m.Signal = 65 }),
		"code and signal":         exited(func(m *wire.Exited) { m.Code, m.Signal = 1, 9 }),
		"unknown cause":           exited(func(m *wire.Exited) { m.Cause = "luck" }),
		"minus one left":          exited(func(m *wire.Exited) { m.LeftKilled = -1 }),
		"2^64-1 bytes":            exited(func(m *wire.Exited) { m.Stdout.Bytes = math.MaxUint64 }),
		"negative wall":           exited(func(m *wire.Exited) { m.WallNS = -1 }),
		"unknown step":            exited(func(m *wire.Exited) { m.StartError = &wire.StartError{Op: "pray"} }),
		"start error and code":    exited(func(m *wire.Exited) { m.StartError, m.Code = &wire.StartError{Op: "exec"}, 1 }),
		"start error with novel":  exited(func(m *wire.Exited) { m.StartError = &wire.StartError{Op: "exec", Text: strings.Repeat(long, 50)} }),
		"credit of 2^64-1":        wire.StdinCredit{Bytes: math.MaxUint64},
		"no argv":                 start(func(m *wire.Start) { m.Argv = nil }),
		"empty command":           start(func(m *wire.Start) { m.Argv = []string{""} }),
		"NUL in argv":             start(func(m *wire.Start) { m.Argv = []string{"a\x00b"} }),
		"argument of 128 KiB":     start(func(m *wire.Start) { m.Argv = append(m.Argv, strings.Repeat("x", 128<<10)) }),
		"2 MiB of arguments":      start(func(m *wire.Start) { m.Argv = repeat(strings.Repeat("x", 100<<10), 21) }),
		"a million arguments":     start(func(m *wire.Start) { m.Argv = repeat("x", 1<<20) }),
		"env without =":           start(func(m *wire.Start) { m.Env = []string{"A"} }),
		"env without name":        start(func(m *wire.Start) { m.Env = []string{"=A"} }),
		"relative dir":            start(func(m *wire.Start) { m.Dir = "tmp" }),
		"dir that is not text":    start(func(m *wire.Start) { m.Dir = "/\xff" }),
		"no timeout":              start(func(m *wire.Start) { m.TimeoutMS = 0 }),
		"negative window":         start(func(m *wire.Start) { m.FinishMS = -1 }),
		"grace of ages":           start(func(m *wire.Start) { m.GraceMS = math.MaxInt64 }),
		"nofile 2^64-1":           start(func(m *wire.Start) { m.Nofile = math.MaxUint64 }),
		"result mode not built":   start(func(m *wire.Start) { m.ResultMode = "agent" }),
		"signal 0":                wire.Signal{},
		"signal 128":              wire.Signal{Signo: 128},
		"negative grace":          wire.Cancel{GraceMS: -1, Cause: wire.CauseCancel},
		"cancel without cause":    wire.Cancel{},
		"ack of nothing":          wire.Ack{},
		"negative lease":          wire.Lease{RemainingMS: -1},
		"challenge without nonce": wire.Challenge{Epoch: 1},
		"init proof without mac":  wire.InitProof{},
		"daemon proof, short mac": wire.DaemonProof{MAC: key[1:]},
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			if err := m.Validate(); !errors.Is(err, wire.ErrValue) {
				t.Errorf("Validate: %v", err)
			}
			if _, err := wire.Encode(m); !errors.Is(err, wire.ErrValue) {
				t.Errorf("Encode: %v", err)
			}
		})
	}
}

func TestDecodeValidates(t *testing.T) {
	_, err := wire.Decode[wire.Signal](wire.Frame{Header: wire.Header{Type: wire.TypeSignal}, Payload: []byte(`{"signo":99}`)})
	if !errors.Is(err, wire.ErrValue) {
		t.Error(err)
	}
}

func repeat(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}
