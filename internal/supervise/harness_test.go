package supervise_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandboxd/internal/wire"
)

// These tests run the real sbx-init as PID 1 of a pid namespace of its own, with the test as the daemon.

const (
	slotUID  = 1900000000
	patience = 30 * time.Second
)

// initBinary is built by TestMain.
var initBinary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sbx-init-test-")
	if err != nil {
		panic(err)
	}
	initBinary = filepath.Join(dir, "sbx-init")
	err = errors.Join(os.Chmod(dir, 0o755), build(initBinary))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.RemoveAll(dir)
		os.Exit(1)
	}
	code := m.Run()
	_ = errors.Join(os.RemoveAll(dir), os.Remove("/tmp/job-tmp"))
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func build(to string) error {
	args := []string{"build", "-o", to}
	env := append(os.Environ(), "CGO_ENABLED=0")
	if raceEnabled {
		args = append(args, "-race")
		env = append(os.Environ(), "CGO_ENABLED=1")
	}
	cmd := exec.Command("go", append(args, "sandboxd/cmd/sbx-init")...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build sbx-init: %w\n%s", err, out)
	}
	return os.Chmod(to, 0o111)
}

// daemon plays the daemon for one init.
type daemon struct {
	t      *testing.T
	socket string
	ln     *net.UnixListener
	cmd    *exec.Cmd
	exit   chan error
	stderr *lockedBuffer
	id     wire.Identity
	conn   *wire.Conn

	keep      bool // keep the output, not only its hash
	discard   bool // do not even look at it
	ackAll    bool
	container string

	stored  wire.Position // what the daemon would have on disk
	ready   wire.Ready
	started *wire.Started
	exited  *wire.Exited
	credit  wire.StdinCredit
	beats   int
	out     [3]recorded
	last    int64 // time of the last numbered frame
	onFrame func(wire.Frame)
}

// recorded is what came of one stream.
type recorded struct {
	bytes.Buffer
	sum  wire.StreamSum
	hash hash.Hash
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// boot starts an init that waits for its daemon.
func boot(t *testing.T, flags ...string) *daemon {
	t.Helper()
	d := prepare(t)
	d.launch(flags)
	return d
}

// prepare makes the socket that an init will connect to.
func prepare(t *testing.T) *daemon {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not run: needs root for a pid namespace")
	}
	dir, err := os.MkdirTemp("", "slot-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &daemon{t: t, socket: filepath.Join(dir, "init.sock"), keep: true, ackAll: true, stderr: &lockedBuffer{},
		exit: make(chan error, 1), id: wire.Identity{Instance: "inst", Slot: "slot-1", Epoch: 1, Key: wire.NewKey()}}
	for i := range d.out {
		d.out[i].hash = sha256.New()
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d.listen()
	t.Cleanup(func() { d.ln.Close() })
	return d
}

func (d *daemon) listen() {
	d.t.Helper()
	_ = os.Remove(d.socket)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.socket, Net: "unix"})
	if err == nil {
		ln.SetUnlinkOnClose(false)
		d.ln, err = ln, os.Chmod(d.socket, 0o666)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// launch runs init as the container would: PID 1, a uid without any capability, its own /proc.
func (d *daemon) launch(flags []string) {
	d.t.Helper()
	script := `mount -t proc proc /proc && mount -t tmpfs -o mode=1777 tmpfs /tmp/job-tmp && exec setpriv --reuid "$0" --regid "$0" ` +
		`--clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"`
	if err := os.MkdirAll("/tmp/job-tmp", 0o755); err != nil {
		d.t.Fatal(err)
	}
	args := append([]string{"-c", script, fmt.Sprint(slotUID), initBinary, "--socket", d.socket,
		"--orphan-grace", "1m"}, flags...) // so that a test run that dies leaves nothing behind
	d.cmd = exec.Command("/bin/sh", args...)
	d.cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "GORACE=halt_on_error=1 atexit_sleep_ms=0"}
	d.cmd.Dir = "/"
	d.cmd.Stderr = d.stderr
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Setsid: true}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { d.exit <- d.cmd.Wait(); close(done) }()
	d.t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // PID 1 of the namespace: everything in it goes too
		<-done
		if text := d.stderr.String(); text != "" && d.t.Failed() {
			d.t.Logf("init said: %s", text)
		}
	})
}

func (d *daemon) accept() *wire.Conn {
	d.t.Helper()
	if err := d.ln.SetDeadline(time.Now().Add(patience)); err != nil {
		d.t.Fatal(err)
	}
	nc, err := d.ln.Accept()
	if err != nil {
		d.t.Fatalf("init does not connect: %v; it said %q", err, d.stderr)
	}
	c := wire.NewConn(nc, wire.SideDaemon)
	d.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		d.t.Fatal(err)
	}
	return c
}

// fill is the slot fill: first connection up to ready.
func (d *daemon) fill() {
	d.t.Helper()
	d.conn = d.accept()
	if err := wire.AcceptFresh(d.conn, d.id); err != nil {
		d.t.Fatal(err)
	}
	d.relax()
	d.until(func() bool { return d.stored.Seq > 0 })
}

func (d *daemon) relax() {
	d.t.Helper()
	if err := d.conn.SetDeadline(time.Time{}); err != nil {
		d.t.Fatal(err)
	}
}

// resume accepts a reconnect as a later daemon.
func (d *daemon) resume() wire.Held {
	d.t.Helper()
	d.conn = d.accept()
	d.id.Epoch++
	held, err := wire.AcceptResume(d.conn, d.id, d.stored)
	if err != nil {
		d.t.Fatal(err)
	}
	d.relax()
	return held
}

func (d *daemon) send(m wire.Message) {
	d.t.Helper()
	if err := d.conn.Send(m); err != nil {
		d.t.Fatalf("send %s: %v; init said %q", m.Type(), err, d.stderr)
	}
}

// until reads and stores frames until the condition holds.
func (d *daemon) until(holds func() bool) {
	d.t.Helper()
	for !holds() {
		if err := d.step(); err != nil {
			d.t.Fatalf("read: %v; init said %q", err, d.stderr)
		}
	}
}

// step stores one frame, as a daemon would: it acks what it has.
func (d *daemon) step() error {
	if err := d.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	f, err := d.conn.Next()
	if err != nil {
		return err
	}
	if err := d.store(f); err != nil {
		return err
	}
	d.stored = d.conn.Position()
	if f.Type.Numbered() && d.ackAll {
		if err := d.conn.Send(wire.Ack{Seq: f.Seq}); err != nil {
			return err
		}
	}
	if d.onFrame != nil {
		d.onFrame(f)
	}
	return nil
}

func (d *daemon) store(f wire.Frame) (err error) {
	if f.Type.Numbered() {
		if f.Time < d.last {
			return fmt.Errorf("time goes back at frame %d", f.Seq)
		}
		d.last = f.Time
	}
	switch f.Type {
	case wire.TypeReady:
		d.ready, err = wire.Decode[wire.Ready](f)
	case wire.TypeStarted:
		m, e := wire.Decode[wire.Started](f)
		d.started, err = &m, e
	case wire.TypeExited:
		m, e := wire.Decode[wire.Exited](f)
		d.exited, err = &m, e
	case wire.TypeStdinCredit:
		d.credit, err = wire.Decode[wire.StdinCredit](f)
	case wire.TypeHeartbeat:
		d.beats++
	case wire.TypeOutput:
		if d.discard {
			return nil
		}
		o := &d.out[f.Stream]
		o.sum.Add(f.Payload)
		if d.keep {
			o.Write(f.Payload)
		} else {
			o.hash.Write(f.Payload)
		}
	}
	return err
}

// command is a start message with the bounds of a test.
func command(argv ...string) wire.Start {
	return wire.Start{Argv: argv, Env: []string{"PATH=/usr/bin:/bin", "HOME=/"}, Dir: "/", TimeoutMS: 60_000, FinishMS: 1000}
}

func shell(script string) wire.Start { return command("/bin/sh", "-c", script) }

// finish reads to exited, lets init end, and checks what must hold for every job.
func (d *daemon) finish() wire.Exited {
	d.t.Helper()
	d.until(func() bool { return d.exited != nil })
	d.send(wire.End{})
	if err := d.gone(); err != nil {
		d.t.Errorf("init ends with %v: %s", err, d.stderr)
	}
	if d.exited.Stdout != d.out[1].sum || d.exited.Stderr != d.out[2].sum {
		d.t.Errorf("sums differ: %+v, %+v; came %+v, %+v", d.exited.Stdout, d.exited.Stderr, d.out[1].sum, d.out[2].sum)
	}
	return *d.exited
}

// gone waits for the end of init.
func (d *daemon) gone() error {
	d.t.Helper()
	select {
	case err := <-d.exit:
		return err
	case <-time.After(patience):
		d.t.Fatal("init does not end")
		return nil
	}
}

// run is a whole job.
func run(t *testing.T, m wire.Start) (*daemon, wire.Exited) {
	t.Helper()
	d := boot(t)
	d.fill()
	d.send(m)
	return d, d.finish()
}

// feed sends all of r as stdin, within the credit, and its end. It reads nothing itself: somebody calls step.
func (d *daemon) feed(r io.Reader, credit func() wire.StdinCredit) error {
	buf := make([]byte, 128<<10)
	for sent := uint64(0); ; {
		n, err := r.Read(buf)
		for c := credit(); n > 0 && sent+uint64(n) > c.Bytes+wire.StdinWindow; c = credit() {
			if c.Closed {
				return nil // nobody reads it
			}
			time.Sleep(100 * time.Microsecond)
		}
		if n > 0 {
			if err := d.conn.SendBytes(wire.TypeStdin, wire.StreamNone, buf[:n]); err != nil {
				return err
			}
			sent += uint64(n)
		}
		if errors.Is(err, io.EOF) {
			return d.conn.SendBytes(wire.TypeStdin, wire.StreamNone, nil)
		}
		if err != nil {
			return err
		}
	}
}
