package supervise_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

func randomBytes(n int, seed uint64) []byte {
	b := make([]byte, n)
	src := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = src.Read(b)
	return b
}

// size is smaller under the race detector, which slows init down tenfold.
func size(mib int) int {
	if raceEnabled {
		mib = max(1, mib/8)
	}
	return mib << 20
}

func TestOutputIsExact(t *testing.T) {
	tests := map[string]struct {
		script string
		want   func(stdout, stderr string) bool
	}{
		"one line of 1 MiB": {"head -c 1048576 /dev/zero | tr '\\0' x; echo", func(out, err string) bool {
			return out == strings.Repeat("x", 1<<20)+"\n" && err == ""
		}},
		"alternating lines": {"i=0; while [ $i -lt 2000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done", func(out, err string) bool {
			return strings.Count(out, "\n") == 2000 && strings.Count(err, "\n") == 2000 && strings.HasPrefix(out, "o0\no1\n") && strings.HasSuffix(err, "e1999\n")
		}},
		"single bytes": {"dd if=/dev/zero bs=1 count=20000 2>/dev/null", func(out, err string) bool {
			return out == strings.Repeat("\x00", 20000)
		}},
		"from a child that outlives": {"(sleep 0.1; echo late) & wait; echo end", func(out, err string) bool { return out == "late\nend\n" }},
		"last words of a killed one": {"head -c 300000 /dev/zero; kill -9 $$", func(out, err string) bool { return len(out) == 300000 }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d, e := run(t, shell(tt.script))
			if !tt.want(d.out[1].String(), d.out[2].String()) {
				t.Errorf("%d and %d bytes, %+v", d.out[1].Len(), d.out[2].Len(), e)
			}
		})
	}
}

// bigOutput is a job that writes bytes which the test can make itself.
func bigOutput(n int) (wire.Start, []byte) {
	m := command("/usr/bin/openssl", "enc", "-aes-128-ctr", "-nosalt", "-K", strings.Repeat("0", 32), "-iv", strings.Repeat("0", 32), "-in", "/dev/zero")
	m.Argv = []string{"/bin/sh", "-c", strings.Join(m.Argv, " ") + " 2>/dev/null | head -c " + strconv.Itoa(n)}
	return m, keystream(n)
}

func TestBigOutputIsExact(t *testing.T) {
	n := size(256)
	m, want := bigOutput(n)
	d := boot(t)
	d.keep = false
	d.fill()
	d.send(m)
	from := time.Now()
	d.finish()
	took := time.Since(from)
	if sum := sha256.Sum256(want); !bytes.Equal(d.out[1].hash.Sum(nil), sum[:]) {
		t.Errorf("%+v", d.out[1].sum)
	}
	t.Logf("%.0f MB/s with hashing on both sides", float64(n)/took.Seconds()/1e6)
}

func TestStdinComesBackFromCat(t *testing.T) {
	data := randomBytes(size(64)+12345, 1)
	m := command("/bin/cat")
	m.Stdin = true
	d := boot(t)
	d.keep = false
	d.fill()
	d.send(m)
	if err := feedWhileReading(d, data); err != nil {
		t.Fatal(err)
	}
	d.finish()
	if sum := sha256.Sum256(data); !bytes.Equal(d.out[1].hash.Sum(nil), sum[:]) {
		t.Errorf("%+v", d.out[1].sum)
	}
}

// feedWhileReading feeds stdin from one goroutine while this one stores what comes, up to exited.
func feedWhileReading(d *daemon, data []byte) error {
	var credit atomic.Pointer[wire.StdinCredit]
	credit.Store(&wire.StdinCredit{})
	d.onFrame = func(f wire.Frame) {
		if f.Type == wire.TypeStdinCredit || f.Type == wire.TypeExited {
			c := d.credit
			c.Closed = c.Closed || f.Type == wire.TypeExited
			credit.Store(&c)
		}
	}
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { err = d.feed(bytes.NewReader(data), func() wire.StdinCredit { return *credit.Load() }) })
	d.until(func() bool { return d.exited != nil })
	wg.Wait()
	return err
}

func TestACommandThatDoesNotReadItsStdinIsNoError(t *testing.T) {
	for name, script := range map[string]string{
		"closes it":     "exec <&-; sleep 0.3; echo end",
		"reads a byte":  "head -c1 >/dev/null; exec <&-; sleep 0.3; echo end",
		"ends at once":  "exit 0",
		"never reads":   "sleep 0.3; echo end",
		"reads the end": "cat >/dev/null; echo end",
	} {
		t.Run(name, func(t *testing.T) {
			m := shell(script)
			m.Stdin = true
			d := boot(t)
			d.fill()
			d.send(m)
			if err := feedWhileReading(d, randomBytes(3<<20, 2)); err != nil && !strings.Contains(err.Error(), "closed") {
				t.Fatal(err)
			}
			if e := d.finish(); e.Code != 0 || name != "ends at once" && d.out[1].String() != "end\n" {
				t.Errorf("%+v %q", e, d.out[1].String())
			}
		})
	}
}

func TestASlowDaemonSlowsTheCommandAndLosesNothing(t *testing.T) {
	n := 8 << 20
	m, want := bigOutput(n)
	d := boot(t)
	d.ackAll = false
	unacked := 0
	d.onFrame = func(f wire.Frame) {
		if unacked++; unacked == 8 || f.Type == wire.TypeExited {
			unacked = 0
			time.Sleep(20 * time.Millisecond)
			d.send(wire.Ack{Seq: f.Seq})
		}
	}
	d.fill()
	d.send(m)
	d.finish()
	if !bytes.Equal(d.out[1].Bytes(), want) {
		t.Errorf("%+v", d.out[1].sum)
	}
}

func TestWithoutAcksTheCommandWaitsAtFourMiB(t *testing.T) {
	m, _ := bigOutput(64 << 20)
	d := boot(t)
	d.keep, d.ackAll = false, false
	d.fill()
	d.send(m)
	for {
		if err := d.conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		f, err := d.conn.Next()
		if err != nil {
			break // nothing comes any more
		}
		if err := d.store(f); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.out[1].sum.Bytes; got > 4<<20 || got < 3<<20 {
		t.Errorf("%d bytes came without an ack", got)
	}
}

// A process that cannot be killed would hold the pipe; here one outside of the job does.
func TestAPipeThatStaysOpenDoesNotDelayTheResult(t *testing.T) {
	d := boot(t)
	d.fill()
	d.send(shell("echo ok; sleep 0.3; head -c 200000 /dev/zero; exit 3"))
	d.until(func() bool { return d.out[1].Len() > 0 })
	hold, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", childrenOf(d.cmd.Process.Pid)[0]), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	timed(t, 0, 2*time.Second, func() { d.until(func() bool { return d.exited != nil }) })
	if e := d.finish(); !e.CutShort || e.Code != 3 || e.Stdout.Bytes != 200_003 {
		t.Errorf("%+v", e)
	}
}

func TestACommandThatReadsItsOwnStdoutHarmsItselfAlone(t *testing.T) {
	d, e := run(t, shell("cat </proc/self/fd/1 >/dev/null & i=0; while [ $i -lt 500 ]; do echo x; i=$((i+1)); done; echo end >&2; exit 3"))
	if e.Code != 3 || d.out[2].String() != "end\n" {
		t.Errorf("%+v", e)
	}
}

func TestHeartbeatsComeWhileNothingElseDoes(t *testing.T) {
	d := boot(t)
	d.fill()
	timed(t, 4*time.Second, 7*time.Second, func() { d.until(func() bool { return d.beats == 1 }) })
}

// keystream is AES-128-CTR of zeroes under a zero key, as openssl writes it.
func keystream(n int) []byte {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		panic(err)
	}
	out := make([]byte, n)
	cipher.NewCTR(block, make([]byte, 16)).XORKeyStream(out, out)
	return out
}
