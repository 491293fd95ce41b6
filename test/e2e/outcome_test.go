package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/api"
)

// Each row is one way to end, told apart by evidence.
func TestEachWayToEndHasItsOwnVerdict(t *testing.T) {
	tests := []struct {
		name, script   string
		flags          []string
		exit           int
		status, reason string
		check          func(*testing.T, api.Result)
	}{
		{name: "success", script: "true", exit: 0, status: "success"},
		{name: "exit 3", script: "exit 3", exit: 3, status: "error", reason: "exited"},
		{name: "exit 137 is not a signal and not memory", script: "exit 137", exit: 137, status: "error", reason: "exited",
			check: func(t *testing.T, r api.Result) {
				if r.OOMKilled || r.Signal != 0 || r.ExitCode == nil || *r.ExitCode != 137 {
					t.Errorf("%+v", r.Outcome)
				}
			}},
		{name: "exit 125 is not a fault of the engine", script: "exit 125", exit: 125, status: "error", reason: "exited"},
		{name: "exit 124 is not a timeout", script: "exit 124", exit: 124, status: "error", reason: "exited"},
		{name: "kill -9 of itself", script: "kill -9 $$", exit: 137, status: "error", reason: "signal",
			check: func(t *testing.T, r api.Result) {
				if r.OOMKilled || r.Signal != 9 || r.SignalName != "SIGKILL" || r.ExitCode != nil || r.KilledBy != "" {
					t.Errorf("%+v", r.Outcome)
				}
			}},
		{name: "timeout", script: "sleep 300 & sleep 300", flags: []string{"--timeout", "1s"}, exit: 124, status: "timeout", reason: "wall_clock",
			check: func(t *testing.T, r api.Result) {
				if !r.TimedOut {
					t.Errorf("%+v", r.Outcome)
				}
			}},
		{name: "timeout of a process that traps TERM", script: `trap "" TERM; while :; do sleep 1; done`, flags: []string{"--timeout", "1s"}, exit: 124, status: "timeout", reason: "wall_clock"},
		{name: "memory", script: `x=$(head -c 200000000 /dev/zero | tr "\0" x); echo ${#x}`, flags: []string{"--memory", "64m"}, exit: 137, status: "error", reason: "oom",
			check: func(t *testing.T, r api.Result) {
				if !r.OOMKilled {
					t.Errorf("%+v", r.Outcome)
				}
			}},
		{name: "memory of a child", script: `(x=$(head -c 200000000 /dev/zero | tr "\0" x); echo ${#x}) ; exit 0`, flags: []string{"--memory", "64m"}, exit: 0, status: "success",
			check: func(t *testing.T, r api.Result) {
				if !r.OOMKilled {
					t.Errorf("the kernel's count is not on the record: %+v", r.Outcome)
				}
			}},
		{name: "background process holds stdout", script: "(sleep 60 &) ; echo out", exit: 0, status: "success",
			check: func(t *testing.T, r api.Result) {
				if took := r.Timings.Settled - r.Timings.Started; took > 2500 {
					t.Errorf("the result came after %d ms", took)
				}
				if r.LeftKilled == 0 || r.Summary != "out" {
					t.Errorf("%+v", r)
				}
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(tt.name, " ", "-")
			if len(name) > 40 {
				name = name[:40]
			}
			o := run(t, tt.script, append([]string{"--name", name}, tt.flags...)...)
			if o.Code != tt.exit {
				t.Errorf("exit %d, want %d; stderr %q", o.Code, tt.exit, o.Stderr)
			}
			if tt.exit != 0 {
				oneLine(t, o.Stderr, "sbx: job")
			}
			var r api.Result
			daemon(t).JSON(&r, "result", "--json", name)
			if r.Status != tt.status || r.Reason != tt.reason || r.Schema != api.ResultSchema {
				t.Errorf("status %q reason %q, want %q %q", r.Status, r.Reason, tt.status, tt.reason)
			}
			if r.Usage.CPUMS == nil || r.Usage.MemoryPeak == nil || r.Usage.WallMS == nil {
				t.Errorf("figures are missing: %+v", r.Usage)
			}
			if tt.check != nil {
				tt.check(t, r)
			}
		})
	}
}

func TestCommandsThatCannotStart(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		exit   int
		status string
		reason string
		names  string
	}{
		{"unknown command", []string{"--", "nosuch"}, 127, "error", "not_found", "nosuch"},
		{"not executable", []string{"--", "/etc/passwd"}, 126, "error", "not_executable", "/etc/passwd"},
		{"a directory", []string{"--", "/etc"}, 126, "error", "not_executable", "/etc"},
		{"missing workdir", []string{"-w", "/nope", "--", "true"}, 125, "failed", "workdir", "/nope"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(tt.name, " ", "-")
			o := daemon(t).Sbx(append([]string{"run", "--name", name, "--image", tiny}, tt.args...)...)
			if o.Code != tt.exit {
				t.Errorf("exit %d, want %d; stderr %q", o.Code, tt.exit, o.Stderr)
			}
			oneLine(t, o.Stderr, tt.names)
			var r api.Result
			daemon(t).JSON(&r, "result", "--json", name)
			if r.Status != tt.status || r.Reason != tt.reason {
				t.Errorf("status %q reason %q, want %q %q", r.Status, r.Reason, tt.status, tt.reason)
			}
		})
	}
}

// A job that traps TERM and exits 0 while it is cancelled is cancelled, its trap has run, and the container is gone.
func TestCancelGivesGraceAndIsNeverSuccess(t *testing.T) {
	d := daemon(t)
	id := strings.TrimSpace(d.Must("run", "-d", "--image", tiny, "--", "sh", "-c", `trap "echo trapped; exit 0" TERM; echo ready; while :; do sleep 0.1; done`).Stdout)
	waitOutput(t, id, "ready")
	began := time.Now()
	d.Must("cancel", id)
	d.Sbx("wait", id)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the cancel took %s", took)
	}
	var r api.Result
	d.JSON(&r, "result", "--json", id)
	if r.Status != "cancelled" || r.Reason != "by_caller" {
		t.Errorf("%+v", r.Outcome)
	}
	if out := d.Must("logs", id).Stdout; !strings.Contains(out, "trapped") {
		t.Errorf("the trap did not run: %q", out)
	}
}

func TestCancelOfAProcessThatIgnoresTermAndForks(t *testing.T) {
	d := daemon(t)
	id := strings.TrimSpace(d.Must("run", "-d", "--timeout", "8s", "--image", tiny, "--", "sh", "-c", `trap "" TERM; echo ready; while :; do (sleep 0.01) & done`).Stdout)
	waitOutput(t, id, "ready")
	began := time.Now()
	d.Must("cancel", id)
	d.Sbx("wait", id)
	if took := time.Since(began); took > 6*time.Second { // grace of 1 s, then the kill
		t.Errorf("the cancel took %s", took)
	}
}

// Ctrl-C cancels with grace, a second one kills; the exit code is 130 either way.
func TestCtrlC(t *testing.T) {
	for _, presses := range []int{1, 2} {
		t.Run(fmt.Sprint(presses), func(t *testing.T) {
			t.Parallel()
			d := daemon(t)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			name := fmt.Sprintf("ctrlc%d", presses)
			script := `trap "sleep 0.3; echo trapped; exit 7" TERM; echo ready; while :; do sleep 0.1; done`
			if presses == 2 {
				script = `trap "" TERM; echo ready; while :; do sleep 0.1; done`
			}
			cmd := d.Command(ctx, "run", "--name", name, "--timeout", "10m", "--image", tiny, "--", "sh", "-c", script)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitOutput(t, name, "ready")
			began := time.Now()
			for range presses {
				_ = cmd.Process.Signal(os.Interrupt)
				time.Sleep(300 * time.Millisecond)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 130 {
				t.Errorf("exit %d, want 130", code)
			}
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("took %s", took)
			}
			var r api.Result
			d.JSON(&r, "result", "--wait", "--json", name)
			if r.Status != "cancelled" {
				t.Errorf("%+v", r.Outcome)
			}
		})
	}
}

// A client that is killed leaves its foreground job to the lease.
func TestTheLeaseEndsTheJobOfAKilledClient(t *testing.T) {
	d := daemon(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := d.Command(ctx, "run", "--name", "leased", "--image", tiny, "--", "sh", "-c", "echo ready; sleep 300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitOutput(t, "leased", "ready")
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	var r api.Result
	d.JSON(&r, "result", "--wait", "--json", "leased")
	if r.Status != "cancelled" || r.Reason != "lease_lost" {
		t.Errorf("%+v", r.Outcome)
	}
}

// waitOutput waits until the job has written text.
func waitOutput(t *testing.T, ref, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if o := daemon(t).Sbx("logs", ref); o.Code == 0 && strings.Contains(o.Stdout, text) {
			return
		}
	}
	t.Fatalf("job %s never wrote %q", ref, text)
}
