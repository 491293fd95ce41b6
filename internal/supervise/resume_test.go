package supervise_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// crash is a daemon that dies: its socket is gone, and so is the connection.
func (d *daemon) crash() {
	d.conn.Close()
	d.ln.Close()
}

// Row 2 of the trials: the daemon is gone amid output and comes back, many times, with half of what it got not stored.
func TestADaemonThatDiesAmidOutputGetsItAll(t *testing.T) {
	n := 24 << 20
	m, want := bigOutput(n)
	d := boot(t)
	d.fill()
	d.send(m)
	for round := range 12 {
		target := d.stored.Seq + uint64(3+round)
		d.until(func() bool { return d.stored.Seq >= target || d.exited != nil })
		if d.exited != nil {
			t.Fatal("over too soon for the test")
		}
		d.crash()
		time.Sleep(time.Duration(round) * 10 * time.Millisecond)
		d.listen()
		if held := d.resume(); !held.Started {
			t.Errorf("held %+v", held)
		}
	}
	if e := d.finish(); e.Code != 0 || !bytes.Equal(d.out[1].Bytes(), want) {
		t.Errorf("%+v", e)
	}
}

func TestAJobThatEndsWhileTheDaemonIsGoneIsReportedLater(t *testing.T) {
	d := running(t, shell("echo ok; sleep 0.3; echo late; exit 5"))
	d.crash()
	time.Sleep(700 * time.Millisecond)
	d.listen()
	d.resume()
	if e := d.finish(); e.Code != 5 || d.out[1].String() != "ok\nlate\n" || e.WallNS > 600e6 {
		t.Errorf("%+v %q", e, d.out[1].String())
	}
}

func TestADeadlineHoldsWhileTheDaemonIsGone(t *testing.T) {
	m := shell("echo ok; sleep 600")
	m.TimeoutMS, m.FinishMS = 500, 100
	d := running(t, m)
	d.crash()
	time.Sleep(time.Second)
	d.listen()
	d.resume()
	if e := d.finish(); e.Cause != wire.CauseDeadline || e.WallNS > 900e6 {
		t.Errorf("%+v", e)
	}
}

func TestACommandWaitsWhenTheDaemonStaysAway(t *testing.T) {
	m, want := bigOutput(32 << 20)
	d := running(t, shell("echo ok; sleep 0.2; "+m.Argv[2]))
	d.crash()
	time.Sleep(time.Second)
	d.listen()
	d.resume()
	if e := d.finish(); !bytes.Equal(d.out[1].Bytes(), append([]byte("ok\n"), want...)) {
		t.Errorf("%+v", e)
	}
}

func TestStdinGoesOnAfterAReconnect(t *testing.T) {
	data := randomBytes(600_000, 3)
	m := command("/bin/cat")
	m.Stdin = true
	d := boot(t)
	d.fill()
	d.send(m)
	send := func(p []byte) {
		for len(p) > 0 {
			n := min(len(p), wire.MaxPayload)
			if err := d.conn.SendBytes(wire.TypeStdin, wire.StreamNone, p[:n]); err != nil {
				t.Fatal(err)
			}
			p = p[n:]
		}
	}
	send(data[:300_000])
	d.until(func() bool { return d.out[1].Len() >= 200_000 })
	d.crash()
	d.listen()
	held := d.resume()
	if held.StdinGot < 200_000 || held.StdinEOF {
		t.Fatalf("%+v", held)
	}
	send(data[held.StdinGot:])
	if err := d.conn.SendBytes(wire.TypeStdin, wire.StreamNone, nil); err != nil {
		t.Fatal(err)
	}
	if d.finish(); !bytes.Equal(d.out[1].Bytes(), data) {
		t.Errorf("%d bytes", d.out[1].Len())
	}
}

func TestAStartThatWasLostIsSentAgain(t *testing.T) {
	d := boot(t)
	d.fill()
	half := make([]byte, wire.HeaderSize+100)
	wire.Header{Type: wire.TypeStart, Seq: 1, Len: 500}.Put(half)
	if _, err := d.conn.NetConn().Write(half); err != nil {
		t.Fatal(err)
	}
	d.crash()
	d.listen()
	if held := d.resume(); held.Started {
		t.Fatal("half a start was taken")
	}
	d.send(shell("exit 6"))
	if e := d.finish(); e.Code != 6 {
		t.Errorf("%+v", e)
	}
}

// Whatever comes from the daemon's side: the connection ends, init and its job go on.
func TestHostileDaemonCostsTheConnectionOnly(t *testing.T) {
	frame := func(h wire.Header, payload string) []byte {
		b := make([]byte, wire.HeaderSize)
		if h.Len == 0 {
			h.Len = uint32(len(payload))
		}
		h.Put(b)
		return append(b, payload...)
	}
	control := func(t wire.Type, seq uint64, payload string) []byte {
		return frame(wire.Header{Type: t, Seq: seq}, payload)
	}
	const from = 2 // the numbers of this connection go on after start
	hostile := map[string][]byte{
		"noise":                bytes.Repeat([]byte{0xa5}, 4096),
		"length 2^32-1":        frame(wire.Header{Type: wire.TypeStdin, Seq: from, Len: 1<<32 - 1}, ""),
		"a frame of init's":    control(wire.TypeHeartbeat, 0, "{}"),
		"welcome again":        control(wire.TypeWelcome, 0, "{}"),
		"a number skipped":     control(wire.TypeSignal, from+5, `{"signo":10}`),
		"ack of the future":    control(wire.TypeAck, 0, `{"seq":999999}`),
		"ack of all":           control(wire.TypeAck, 0, `{"seq":18446744073709551615}`),
		"signal 0":             control(wire.TypeSignal, from, `{"signo":0}`),
		"unknown field":        control(wire.TypeCancel, from, `{"grace_ms":0,"cause":"cancel","x":1}`),
		"key twice":            control(wire.TypeCancel, from, `{"grace_ms":0,"grace_ms":1,"cause":"cancel"}`),
		"negative grace":       control(wire.TypeCancel, from, `{"grace_ms":-1,"cause":"cancel"}`),
		"a second start":       control(wire.TypeStart, from, `{"argv":"dHJ1ZQA=","env":"","dir":"/","timeout_ms":1,"finish_ms":0,"grace_ms":0}`),
		"stdin nobody asked":   control(wire.TypeStdin, from, "x"),
		"deep":                 control(wire.TypeCancel, from, strings.Repeat(`{"a":`, 2000)),
		"line, not built":      control(wire.TypeLine, from, "x"),
		"half a start, closed": frame(wire.Header{Type: wire.TypeStart, Flags: wire.More, Seq: from}, "{"),
	}
	d := running(t, shell("echo ok; while [ ! -e /tmp/job-tmp/go ]; do sleep 0.02; done; exit 8"))
	resumed := false
	for name, bad := range hostile {
		if resumed { // numbers start anew on each connection
			bad = bytes.Clone(bad)
			if h := wire.ParseHeader(bad); h.Seq == from {
				h.Seq = 1
				h.Put(bad)
			}
		}
		if _, err := d.conn.NetConn().Write(bad); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.HasSuffix(name, "closed") {
			d.conn.Close()
		}
		err := error(nil)
		for err == nil {
			err = d.step()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("%s: init keeps the connection", name)
		}
		d.conn.Close()
		d.resume()
		resumed = true
	}
	enter(t, d, "touch /tmp/job-tmp/go")
	if e := d.finish(); e.Code != 8 {
		t.Errorf("%+v", e)
	}
}

// enter runs a shell line in the mount namespace of init.
func enter(t *testing.T, d *daemon, line string) {
	t.Helper()
	out, err := exec.Command("nsenter", "-m", "-t", fmt.Sprint(d.cmd.Process.Pid), "/bin/sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestMoreStdinThanTheCreditIsRefused(t *testing.T) {
	m := shell("echo ok; sleep 600")
	m.Stdin = true
	d := running(t, m)
	var err error
	for range 40 { // 1 MiB in the pipe, 1 MiB of window, and more
		if err = d.conn.SendBytes(wire.TypeStdin, wire.StreamNone, make([]byte, 128<<10)); err != nil {
			break
		}
	}
	for err == nil {
		err = d.step()
	}
	d.conn.Close()
	held := d.resume()
	if held.StdinGot > 2<<20 || held.StdinGot < 1<<20 {
		t.Errorf("%+v", held)
	}
	d.send(wire.Cancel{Cause: wire.CauseCancel})
	d.finish()
}

func TestAStrangerCannotResumeAJob(t *testing.T) {
	d := running(t, shell("echo ok; sleep 0.6; exit 4"))
	d.crash()
	d.listen()
	for range 2 {
		c := d.accept()
		stranger := d.id
		stranger.Key = wire.NewKey()
		if _, err := wire.AcceptResume(c, stranger, d.stored); !errors.Is(err, wire.ErrProof) {
			t.Errorf("a stranger: %v", err)
		}
		c.Close()
	}
	old := d.accept()
	past := d.id
	past.Epoch = 0
	if _, err := wire.AcceptResume(old, past, d.stored); err == nil {
		t.Error("an older daemon was taken")
	}
	old.Close()
	d.resume()
	if e := d.finish(); e.Code != 4 {
		t.Errorf("%+v", e)
	}
}

func TestOrphanedInitEndsAfterItsGrace(t *testing.T) {
	for name, script := range map[string]string{"while the job runs": "echo ok; sleep 600", "when the job has ended": "echo ok"} {
		t.Run(name, func(t *testing.T) {
			m := shell(script)
			m.TimeoutMS, m.FinishMS = 300, 100_000
			d := running(t, m, "--orphan-grace", "700ms")
			d.crash()
			timed(t, 600*time.Millisecond, 3*time.Second, func() {
				var exit *exec.ExitError
				if err := d.gone(); !errors.As(err, &exit) || exit.ExitCode() != 4 {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

func TestInitWithoutADaemonEnds(t *testing.T) {
	d := boot(t, "--first-connect", "300ms")
	d.ln.Close()
	var exit *exec.ExitError
	if err := d.gone(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v", err)
	}
}

func TestInitTriesAgainWhenTheFirstConnectionBreaks(t *testing.T) {
	d := boot(t)
	d.accept().Close()
	if nc, ok := d.accept().NetConn().(*net.UnixConn); ok { // speaks nonsense
		_, _ = nc.Write(bytes.Repeat([]byte{7}, 100))
		nc.Close()
	}
	d.fill()
	d.send(shell("exit 2"))
	if e := d.finish(); e.Code != 2 {
		t.Errorf("%+v", e)
	}
}
