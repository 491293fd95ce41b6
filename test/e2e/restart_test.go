package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/test/harness"
)

// A job goes on while the daemon is stopped, killed and started again; its output is exact, on a follow that lasts
// through it all as well, and its end is its own.
func TestJobsOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	d := harness.New(t, harness.Options{})
	const lines = 60
	id := strings.TrimSpace(d.Must("run", "-d", "--image", tiny, "--", "sh", "-c",
		fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); sleep 0.1; done; exit 7", lines)).Stdout)
	followed := make(chan harness.Output, 1)
	go func() { followed <- d.Sbx("logs", "-f", id) }()
	for i, end := range []func(){d.Stop, d.Kill, d.Kill, d.Stop} {
		time.Sleep(700 * time.Millisecond)
		end()
		if i%2 == 1 {
			time.Sleep(300 * time.Millisecond)
		}
		d.Start("")
	}
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if o := d.Sbx("wait", id); o.Code != 0 && o.Code != 7 {
		t.Errorf("wait: %+v", o)
	}
	var r api.Result
	d.JSON(&r, "result", "--json", id)
	if r.Status != "error" || r.ExitCode == nil || *r.ExitCode != 7 || r.Stream == nil || r.Stream.Fault != "" {
		t.Errorf("result %+v stream %+v", r.Outcome, r.Stream)
	}
	if o := <-followed; o.Stdout != want.String() {
		t.Errorf("the follow got %d bytes, want %d", len(o.Stdout), want.Len())
	}
	if o := d.Must("logs", id); o.Stdout != want.String() {
		t.Errorf("logs got %d bytes, want %d", len(o.Stdout), want.Len())
	}
}

// A job that ends while there is no daemon is finished from what its init kept.
func TestJobThatEndsWithoutADaemon(t *testing.T) {
	t.Parallel()
	d := harness.New(t, harness.Options{})
	id := strings.TrimSpace(d.Must("run", "-d", "--image", tiny, "--", "sh", "-c", "echo before; sleep 1; echo after; exit 5").Stdout)
	waitFor(t, "the job to run", func() bool { return strings.Contains(d.Sbx("logs", id).Stdout, "before") })
	d.Kill()
	time.Sleep(2 * time.Second)
	d.Start("")
	var r api.Result
	d.JSON(&r, "result", "--wait", "--json", id)
	if r.Status != "error" || r.ExitCode == nil || *r.ExitCode != 5 {
		t.Errorf("%+v", r.Outcome)
	}
	if out := d.Must("logs", id).Stdout; out != "before\nafter\n" {
		t.Errorf("%q", out)
	}
	waitFor(t, "its container to go", func() bool { return len(d.Containers()) == 0 })
}

// Queued jobs survive, and a cancel that was stored is obeyed by the next daemon.
func TestTheQueueSurvives(t *testing.T) {
	t.Parallel()
	d := harness.New(t, harness.Options{Config: "[capacity]\nmax_running = 1\n"})
	first := strings.TrimSpace(d.Must("run", "-d", "--image", tiny, "--", "sh", "-c", "echo on; sleep 2").Stdout)
	var ids []string
	for i := range 4 {
		ids = append(ids, strings.TrimSpace(d.Must("run", "-d", "--image", tiny, "--", "echo", fmt.Sprint(i)).Stdout))
	}
	d.Must("cancel", ids[3])
	d.Kill()
	d.Start("")
	for i, id := range ids[:3] {
		d.Must("wait", id)
		if out := d.Must("logs", id).Stdout; out != fmt.Sprintf("%d\n", i) {
			t.Errorf("job %d: %q", i, out)
		}
	}
	var r api.Result
	d.JSON(&r, "result", "--json", ids[3])
	if r.Status != "cancelled" {
		t.Errorf("%+v", r.Outcome)
	}
	d.Must("wait", first)
}

// A container taken away by hand ends its job as lost, and nothing else suffers.
func TestContainerRemovedByHand(t *testing.T) {
	t.Parallel()
	d := harness.New(t, harness.Options{})
	id := strings.TrimSpace(d.Must("run", "-d", "--image", tiny, "--", "sh", "-c", "echo on; sleep 300").Stdout)
	waitFor(t, "the job to run", func() bool { return strings.Contains(d.Sbx("logs", id).Stdout, "on") })
	for _, c := range d.Containers() {
		harness.Docker(t, "rm", "-f", c)
	}
	var r api.Result
	o := d.JSON(&r, "result", "--wait", "--json", id)
	if r.Status != "lost" {
		t.Errorf("%+v (exit %d)", r.Outcome, o.Code)
	}
	d.Must("run", "--image", tiny, "--", "true")
}

func TestTwoDaemonsOnOneStateDirectory(t *testing.T) {
	t.Parallel()
	d := harness.New(t, harness.Options{})
	second := d.Twin()
	if err := second.TryStart(""); err == nil {
		t.Fatal("a second daemon started on the same state directory")
	}
	if log := second.Log(); !strings.Contains(log, "state") {
		t.Errorf("log: %s", log)
	}
	d.Must("run", "--image", tiny, "--", "true")
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}
