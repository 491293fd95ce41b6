package posture_test

import (
	"strings"
	"testing"
	"time"
)

func grandchildOnThePipe(t *testing.T, w *world) {
	var e end
	took := timed(func() {
		e = w.run(t, "--", "sh", "-c", "sleep 300 & (sleep 300 >/dev/null) & echo before; exec >&-; exit 0")
	})
	if expectEnd(t, e, "success", ""); e.output != "before\n" || e.LeftKilled < 2 {
		t.Errorf("said %q, %d killed", e.output, e.LeftKilled)
	}
	if wall := *e.Usage.WallMS; wall > 2000 || took > 30*time.Second {
		t.Errorf("took %d ms, %s in all", wall, took)
	}
}

const ignoringScript = `
import os, signal, time
for s in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD: signal.signal(s, signal.SIG_IGN)
print("ready", flush=True)
while True:
    try:
        if os.fork() == 0:
            time.sleep(0.05)
            os._exit(0)
    except BlockingIOError: time.sleep(0.01)
`

func ignoresTerm(t *testing.T, w *world) {
	w.take(t, 1)
	id := w.start(t, "--image", base, "--pids", "64", "--timeout", "5m", "--", "python3", "-c", ignoringScript)
	p := w.place(t, id)
	eventually(t, 10*time.Second, "the command is ready", func() bool { return strings.Contains(w.output(t, id), "ready") })
	var e end
	took := timed(func() {
		w.must(t, "cancel", id)
		e = w.await(t, id)
	})
	expectEnd(t, e, "cancelled", "by_caller")
	if took < cancelGrace/2 || took > cancelGrace+killWithin {
		t.Errorf("the cancel took %s with a grace of %s", took, cancelGrace)
	}
	gone(t, p)
}

func stopped(t *testing.T, w *world) {
	e := w.run(t, "--timeout", "2s", "--", "sh", "-c", "kill -STOP 1; sleep 100 & kill -STOP $!; echo stopping; kill -STOP -1; kill -STOP $$; sleep 100")
	expectEnd(t, e, "timeout", "wall_clock")
	if wall := *e.Usage.WallMS; wall > 2000+killWithin.Milliseconds() || !strings.Contains(e.output, "stopping") {
		t.Errorf("took %d ms, said %q", wall, e.output)
	}
}

func trapsTerm(t *testing.T, w *world) {
	w.take(t, 1)
	id := w.start(t, "--", "sh", "-c", "trap 'echo trapped; exit 0' TERM; echo ready; while :; do sleep 0.1; done")
	eventually(t, 20*time.Second, "the command is ready", func() bool { return strings.Contains(w.output(t, id), "ready") })
	w.must(t, "cancel", id)
	e := w.await(t, id)
	expectEnd(t, e, "cancelled", "by_caller")
	if !strings.Contains(e.output, "trapped") || e.RunExit == 0 || e.StatusExit == 0 {
		t.Errorf("%+v %q", e.Outcome, e.output)
	}
}

func lookalikes(t *testing.T, w *world) {
	for command, want := range map[string]struct {
		reason string
		code   int // 0: none
		signal string
		exit   int
	}{
		"exit 137":    {"exited", 137, "", 137},
		"exit 125":    {"exited", 125, "", 125},
		"exit 124":    {"exited", 124, "", 124},
		"kill -9 $$":  {"signal", 0, "SIGKILL", 137},
		"kill -31 $$": {"signal", 0, "SIGSYS", 159},
	} {
		e := w.run(t, "--", "sh", "-c", command)
		expectEnd(t, e, "error", want.reason)
		switch {
		case want.code > 0 && (e.ExitCode == nil || *e.ExitCode != want.code), e.SignalName != want.signal, e.RunExit != want.exit,
			e.OOMKilled, e.TimedOut, e.KilledBy != "":
			t.Errorf("%s: %+v", command, e.Outcome)
		}
	}
}

func childOOM(t *testing.T, w *world) {
	e := w.run(t, "--image", base, "-m", "128m", "--", "python3", "-c",
		"import os\nif os.fork() == 0:\n  b = bytearray(256 << 20)\n  os._exit(0)\nprint('child', os.wait()[1])")
	if expectEnd(t, e, "success", ""); !e.OOMKilled || e.output != "child 9\n" {
		t.Errorf("%+v %q", e.Outcome, e.output)
	}
}
