package delegation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const spending = `[profiles.spender]
images = ["sandboxd/tiny"]
delegates = ["leaf"]
[profiles.spender.limits]
memory = "256MiB"
[profiles.spender.budget]
cpu = "2s"
output_bytes = 100000
`

func TestProcessorTimeEndsTheJob(t *testing.T) {
	d := daemon(t)
	began := time.Now()
	o := run(t, d, "spender", "while :; do :; done", "--name", "burner", "--timeout", "60s")
	took := time.Since(began)
	in := inspect(t, d, "burner")
	if o.Code != 121 || in.Result.Status != "budget_exhausted" || in.Result.Reason != "cpu_ms" {
		t.Fatalf("%+v %+v", o, in.Result.Outcome)
	}
	if cpu := in.Result.Usage.CPUMS; cpu == nil || *cpu < 1900 || *cpu > 4000 {
		t.Errorf("used %v ms of 2000", deref(cpu))
	}
	t.Logf("%d ms of cpu in %s", deref(in.Result.Usage.CPUMS), took)
	warned(t, in, "cpu_ms")
}

// A child's processor time is its parent's: the grant bounds it, and the rest is the parent's own.
func TestProcessorTimeOfAChildIsItsParents(t *testing.T) {
	d := daemon(t)
	id := start(t, d, "spender", "sbx run -q --budget cpu=500ms -p leaf --name burning-child -- sh -c 'while :; do :; done' 2>/dev/null; echo ended $?")
	r := wait(t, d, id, 60*time.Second)
	if r.Status != "success" || r.Summary != "ended 121" {
		t.Errorf("%+v %q", r.Outcome, r.Summary)
	}
	jobs := tree(t, d, id)
	child, own := pot(t, named(t, jobs, "burning-child"), "cpu_ms"), pot(t, jobs[0], "cpu_ms")
	if child.Limit == nil || *child.Limit != 500 || child.Spent < 450 || child.Spent > 2500 || own.Spent < child.Spent || own.Granted != 0 {
		t.Errorf("child %+v, parent %+v", child, own)
	}
}

// What a child was granted and did not use is its parent's again when it has ended.
func TestWhatAChildDoesNotUseComesBack(t *testing.T) {
	d := daemon(t)
	id := start(t, d, "spender", `for i in 1 2 3; do
	sbx run -p leaf --budget cpu=1500ms --strict-budget --name frugal-$i -- true || exit 9
done`)
	if r := wait(t, d, id, 60*time.Second); r.Status != "success" {
		t.Errorf("%+v\n%s", r.Outcome, d.Sbx("logs", id).Stderr)
	}
	for _, j := range tree(t, d, id) {
		cpu := pot(t, j, "cpu_ms")
		if cpu.Spent > 1000 || cpu.Granted != 0 || j.Parent != "" && (cpu.Limit == nil || *cpu.Limit != 1500) {
			t.Errorf("%s: limit %d, spent %d, granted %d", j.Name, deref(cpu.Limit), cpu.Spent, cpu.Granted)
		}
	}
}

func TestOutputEndsAtTheByte(t *testing.T) {
	d := daemon(t)
	o := run(t, d, "spender", "yes 0123456 | head -c 1000000; sleep 30", "--name", "writer")
	in := inspect(t, d, "writer")
	if o.Code != 121 || in.Result.Status != "budget_exhausted" || in.Result.Reason != "output_bytes" {
		t.Errorf("exit %d %+v %s", o.Code, in.Result.Outcome, o.Stderr)
	}
	if s := in.Result.Stream; s == nil || s.Kept != 100000 || len(d.Must("logs", "writer").Stdout) != 100000 || len(o.Stdout) != 100000 {
		t.Errorf("%+v; %d bytes came", s, len(o.Stdout))
	}
	warned(t, in, "output_bytes")
}

// Parent and child write from one pot.
func TestOutputOfATreeEndsAtTheByte(t *testing.T) {
	d := daemon(t)
	id := start(t, d, "spender", `yes 0123456 | head -c 60000; sleep 1
sbx run -q -p leaf --name writing-child -- sh -c 'yes 0123456 | head -c 100000; sleep 30' >/dev/null 2>&1; exit $?`)
	r := wait(t, d, id, 60*time.Second)
	child := wait(t, d, "writing-child", time.Second)
	if child.Status != "budget_exhausted" || child.Reason != "output_bytes" || child.Stream == nil {
		t.Fatalf("%+v", child.Outcome)
	}
	if r.ExitCode == nil || *r.ExitCode != 121 {
		t.Errorf("the parent: %+v", r.Outcome)
	}
	if r.Stream.Kept != 60000 || r.Stream.Kept+child.Stream.Kept != 100000 {
		t.Errorf("parent %+v, child %+v", r.Stream, child.Stream)
	}
	jobs := tree(t, d, id)
	if line := pot(t, jobs[0], "output_bytes"); line.Spent != 100000 {
		t.Errorf("the tree spent %d of %d; children %+v", line.Spent, deref(line.Limit), jobs[1].Budget)
	}
}

// warned holds a job's events to one warning each at 50, 75 and 90 %.
func warned(t *testing.T, in inspected, dimension string) {
	t.Helper()
	var percents []string
	for _, p := range in.of("budget_warning") {
		if p["dimension"] == dimension {
			percents = append(percents, p["percent"])
		}
	}
	slices.Sort(percents)
	if fmt.Sprint(percents) != "[50 75 90]" {
		t.Errorf("warnings of %s: %v", dimension, percents)
	}
}

func deref(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}
