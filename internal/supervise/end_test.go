package supervise_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// running fills, starts and waits until the command has said ok on stdout.
func running(t *testing.T, m wire.Start, flags ...string) *daemon {
	t.Helper()
	d := boot(t, flags...)
	d.fill()
	d.send(m)
	d.until(func() bool { return strings.Contains(d.out[1].String(), "ok") || d.exited != nil })
	if d.exited != nil {
		t.Fatalf("%+v %s", *d.exited, d.out[2].String())
	}
	return d
}

func timed(t *testing.T, least, most time.Duration, f func()) {
	t.Helper()
	from := time.Now()
	f()
	if took := time.Since(from); took < least || took > most {
		t.Errorf("took %v, want %v to %v", took, least, most)
	}
}

func cancel(grace time.Duration) wire.Cancel {
	return wire.Cancel{GraceMS: grace.Milliseconds(), Cause: wire.CauseCancel}
}

func TestCancel(t *testing.T) {
	const trap = `trap 'echo cleaned; exit 0' TERM; echo ok; while :; do sleep 0.05; done`
	const deaf = `trap '' TERM; echo ok; while :; do sleep 0.05; done`
	tests := []struct {
		name         string
		script       string
		grace        time.Duration
		least, most  time.Duration
		code, signal int
		term, kill   bool
		stdout       string
	}{
		{"a plain command ends at once", "echo ok; exec sleep 600", 10 * time.Second, 0, time.Second, 0, 15, true, false, "ok\n"},
		{"a shell that waits ends at once", "echo ok; sleep 600", 10 * time.Second, 0, time.Second, 0, 15, true, false, "ok\n"},
		{"a trap runs and its exit 0 is no success", trap, 10 * time.Second, 0, time.Second, 0, 0, true, false, "ok\ncleaned\n"},
		{"a deaf command is killed after the grace", deaf, 500 * time.Millisecond, 500 * time.Millisecond, 1500 * time.Millisecond, 0, 9, true, true, "ok\n"},
		{"no grace kills now", trap, 0, 0, time.Second, 0, 9, false, true, "ok\n"},
		{"a stopped tree ends", "(kill -STOP $$) & echo ok; sleep 600", 300 * time.Millisecond, 0, time.Second, 0, 15, true, false, "ok\n"},
		{"a stopped deaf tree ends", "trap '' TERM; echo ok; (kill -STOP 0) & while :; do sleep 1; done", 300 * time.Millisecond, 300 * time.Millisecond, 1500 * time.Millisecond, 0, 9, true, true, "ok\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := running(t, shell(tt.script))
			time.Sleep(50 * time.Millisecond)
			timed(t, tt.least, tt.most, func() {
				d.send(cancel(tt.grace))
				d.until(func() bool { return d.exited != nil })
			})
			e := d.finish()
			if e.Code != tt.code || e.Signal != tt.signal || e.TermSent != tt.term || e.KillSent != tt.kill || e.Cause != wire.CauseCancel {
				t.Errorf("%+v", e)
			}
			if d.out[1].String() != tt.stdout {
				t.Errorf("%q", d.out[1].String())
			}
		})
	}
}

func TestASecondCancelShortensTheGrace(t *testing.T) {
	d := running(t, shell("trap '' TERM; echo ok; while :; do sleep 0.05; done"))
	timed(t, 0, 2*time.Second, func() {
		d.send(cancel(time.Minute))
		d.send(cancel(time.Hour))
		d.send(cancel(200 * time.Millisecond))
		d.until(func() bool { return d.exited != nil })
	})
	if e := d.finish(); e.Cause != wire.CauseCancel || e.Signal != 9 {
		t.Errorf("%+v", e)
	}
}

func TestDeadline(t *testing.T) {
	tests := []struct {
		name            string
		script          string
		timeout, finish int64
		least, most     time.Duration
		signal          int
		term, kill      bool
		stdout          string
	}{
		{"ends a command with TERM", "echo ok; exec sleep 600", 300, 5000, 200 * time.Millisecond, 1300 * time.Millisecond, 15, true, false, "ok\n"},
		{"leaves the finishing window", "trap 'sleep 0.2; echo result; exit 0' TERM; echo ok; while :; do sleep 0.02; done", 300, 5000, 300 * time.Millisecond, 2 * time.Second, 0, true, false, "ok\nresult\n"},
		{"kills at the end of the window", "trap '' TERM; echo ok; while :; do sleep 0.05; done", 300, 300, 500 * time.Millisecond, 1600 * time.Millisecond, 9, true, true, "ok\n"},
		{"kills now without a window", "trap '' TERM; echo ok; while :; do sleep 0.05; done", 300, 0, 200 * time.Millisecond, 1300 * time.Millisecond, 9, false, true, "ok\n"},
		{"also with children of children", "echo ok; sleep 300 & sleep 300", 300, 5000, 200 * time.Millisecond, 1300 * time.Millisecond, 15, true, false, "ok\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := shell(tt.script)
			m.TimeoutMS, m.FinishMS = tt.timeout, tt.finish
			d := running(t, m)
			timed(t, tt.least, tt.most, func() { d.until(func() bool { return d.exited != nil }) })
			e := d.finish()
			if e.Signal != tt.signal || e.TermSent != tt.term || e.KillSent != tt.kill || e.Cause != wire.CauseDeadline {
				t.Errorf("%+v", e)
			}
			if d.out[1].String() != tt.stdout {
				t.Errorf("%q", d.out[1].String())
			}
		})
	}
}

func TestLease(t *testing.T) {
	t.Run("that runs out ends the job", func(t *testing.T) {
		d := running(t, shell("echo ok; sleep 600"))
		d.send(wire.Lease{RemainingMS: 60_000})
		d.send(wire.Lease{RemainingMS: 200})
		timed(t, 150*time.Millisecond, time.Second, func() { d.until(func() bool { return d.exited != nil }) })
		if e := d.finish(); e.Cause != wire.CauseLease || e.Signal != 9 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("that is renewed does not", func(t *testing.T) {
		d := running(t, shell("echo ok; sleep 0.6"))
		d.send(wire.Lease{RemainingMS: 200})
		d.send(wire.Lease{RemainingMS: 60_000})
		if e := d.finish(); e.Cause != wire.CauseNone || e.Signal != 0 {
			t.Errorf("%+v", e)
		}
	})
}

func TestSignalReachesTheProcessGroup(t *testing.T) {
	d := running(t, shell(`trap 'echo usr1' USR1
		(trap 'echo child; exit 0' USR1; while :; do sleep 0.02; done) & sleep 0.1; echo ok; wait; wait; exit 4`))
	d.send(wire.Signal{Signo: int(syscall.SIGUSR1)})
	e := d.finish()
	if out := d.out[1].String(); e.Code != 4 || !strings.Contains(out, "usr1") || !strings.Contains(out, "child") {
		t.Errorf("%+v %q", e, out)
	}
}

func TestWhatIsLeftAtTheEndIsKilledAndCounted(t *testing.T) {
	tests := []struct {
		name, script string
		least        int
	}{
		{"a background process that holds stdout", "sleep 600 & exit 3", 1},
		{"a daemon of its own session", "setsid sleep 600 & sleep 0.1; exit 3", 1},
		{"twenty of them, deaf", `for i in $(seq 20); do (trap '' TERM HUP INT; sleep 600) & done; sleep 0.2; exit 3`, 20},
		{"a stopped one", "sleep 600 & kill -STOP $!; exit 3", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			timed(t, 0, 2*time.Second, func() {
				_, e := run(t, shell(tt.script))
				if e.Code != 3 || e.LeftKilled < tt.least || e.CutShort || e.Cause != "" {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

func TestAForkBombEndsAtTheDeadline(t *testing.T) {
	m := command("/usr/bin/python3", "-c", `
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(1, b"ok")
while True:
    try: os.fork()
    except OSError: pass`)
	m.TimeoutMS, m.FinishMS, m.Nproc = 1000, 200, 200
	d := running(t, m)
	timed(t, 0, 5*time.Second, func() { d.until(func() bool { return d.exited != nil }) })
	if e := d.finish(); e.Cause != wire.CauseDeadline || !e.TermSent {
		t.Errorf("%+v", e)
	}
}

// Trial 12: orphans reparent to PID 1.
func TestOrphansAreReapedAsTheyCome(t *testing.T) {
	const orphans = 10_000
	d := boot(t)
	d.fill()
	m := shell(fmt.Sprintf(`echo ok; i=0; while [ $i -lt %d ]; do ( : & ) ; i=$((i+1)); done; echo done`, orphans))
	m.TimeoutMS = 120_000
	d.send(m)
	stop, samples := make(chan struct{}), make(chan []int)
	go func() { samples <- sampleZombies(d.cmd.Process.Pid, stop) }()
	e := d.finish()
	close(stop)
	seen := <-samples
	slices.Sort(seen)
	median, most := seen[len(seen)/2], seen[len(seen)-1]
	// A sample may fall between death and wait4, and on busy cores init waits for its turn; but nothing piles up.
	if median > 1 || most > orphans/10 || e.Code != 0 || d.out[1].String() != "ok\ndone\n" {
		t.Errorf("zombies: median %d, most %d; %+v", median, most, e)
	}
	t.Logf("zombies of %d orphans in %d samples: median %d, most %d; wall %v", orphans, len(seen), median, most, time.Duration(e.WallNS))
}

// sampleZombies counts the zombies of a process again and again until stop.
func sampleZombies(parent int, stop <-chan struct{}) []int {
	var counts []int
	for {
		n := 0
		for _, pid := range childrenOf(parent) {
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			if err == nil && strings.Contains(string(stat), ") Z ") {
				n++
			}
		}
		counts = append(counts, n)
		select {
		case <-stop:
			return counts
		case <-time.After(time.Millisecond):
		}
	}
}

// childrenOf reads the children of all threads of a process, any of which may have adopted.
func childrenOf(parent int) []int {
	var pids []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, task := range tasks {
		raw, _ := os.ReadFile(task)
		for _, f := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Probe 97: the job sends every signal to init. What the kernel lets through, init catches.
func TestInitSurvivesEverySignalOfTheJob(t *testing.T) {
	d, e := run(t, command("/usr/bin/python3", "-c", `
import os, time
for _ in range(3):
    for n in range(1, 65):
        try: os.kill(1, n)
        except OSError as err: print(n, err)
    time.sleep(0.05)
print("survived", flush=True)`))
	if e.Code != 0 || !strings.HasSuffix(d.out[1].String(), "survived\n") {
		t.Errorf("%+v %q %q", e, d.out[1].String(), d.out[2].String())
	}
}

func TestTheJobCannotLookIntoInit(t *testing.T) {
	d, _ := run(t, shell(`for f in environ mem maps fd/0 exe cwd; do head -c1 /proc/1/$f >/dev/null 2>&1 && echo "read $f"; done
		ls /proc/1/fd 2>/dev/null && echo listed; (echo x > /proc/1/mem) 2>/dev/null && echo wrote; echo end`))
	if got := d.out[1].String(); got != "end\n" {
		t.Errorf("%q", got)
	}
}
