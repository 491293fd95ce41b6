package delegation_test

import (
	"strings"
	"testing"
	"time"
)

// Outputs, codes and records come back from two levels below, seen alike from the host and from inside.
func TestTreeOfDepthTwoFromInside(t *testing.T) {
	d := daemon(t)
	stranger := start(t, d, "leaf", "sleep 300", "--name", "stranger")
	id := start(t, d, "top", `
sbx run -p mid --name mid -- sh -c '
	sbx run -p leaf --name leaf -- sh -c "echo leaf says; echo leaf complains >&2; exit 3"
	echo leaf ended $?
	echo mid sees $(sbx ps -aq | wc -l)
	sbx inspect top >/dev/null 2>&1; echo mid inspects top: $?
	sbx cancel top >/dev/null 2>&1; echo mid cancels top: $?
	exit 5'
echo mid ended $?
echo top sees $(sbx ps -aq | wc -l)
sbx inspect stranger >/dev/null 2>&1; echo top inspects stranger: $?
sbx logs stranger >/dev/null 2>&1; echo top reads stranger: $?
sbx result --json leaf | grep -c '"exit_code": *3'
sbx tree
`, "--name", "top")
	r := wait(t, d, id, 60*time.Second)
	out, log := d.Must("logs", id).Stdout, d.Sbx("logs", id)
	if r.Status != "success" {
		t.Errorf("%+v\n%s", r.Outcome, log.Stderr)
	}
	for _, line := range []string{
		"leaf says", "leaf ended 3", "mid sees 2", "mid inspects top: 125", "mid cancels top: 125",
		"mid ended 5", "top sees 3", "top inspects stranger: 125", "top reads stranger: 125",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("the output lacks %q", line)
		}
	}
	if !strings.Contains(log.Stderr, "leaf complains") {
		t.Errorf("stderr of the grandchild did not come back: %q", log.Stderr)
	}
	inside := out[strings.LastIndex(out, "JOB"):]
	for _, want := range []string{"- ", "top", "mid", "leaf"} {
		if !strings.Contains(inside, want) {
			t.Errorf("sbx tree inside lacks %q", want)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", out, log.Stderr)
	}
	jobs := tree(t, d, id)
	if len(jobs) != 3 || jobs[0].Name != "top" || jobs[1].Name != "mid" || jobs[2].Name != "leaf" {
		t.Fatalf("%+v", jobs)
	}
	for depth, j := range jobs {
		if j.Depth != depth || depth > 0 && j.Parent != jobs[depth-1].ID || j.State != "done" {
			t.Errorf("%+v", j)
		}
	}
	if o := jobs[2].Outcome; o == nil || o.Status != "error" || o.ExitCode == nil || *o.ExitCode != 3 {
		t.Errorf("leaf: %+v", o)
	}
	if o := d.Must("tree", id); !strings.Contains(o.Stdout, "`- ") {
		t.Errorf("sbx tree on the host:\n%s", o.Stdout)
	}
	if s := inspect(t, d, stranger); s.State != "running" {
		t.Errorf("the stranger is %s", s.State)
	}
}

const threeSleepers = `sbx run -d -p mid --name mid-%[1]s -- sh -c 'sbx run -d -p leaf --name leaf-%[1]s -- sh -c "echo up; sleep 300"; sleep 300' && sleep 300`

func TestKillOfTheRootTakesAllBelow(t *testing.T) {
	d := daemon(t)
	id := start(t, d, "top", strings.ReplaceAll(threeSleepers, "%[1]s", "killed"), "--name", "killed")
	waitFor(t, "the grandchild", prints(d, "leaf-killed", "up"))
	began := time.Now()
	d.Must("cancel", "--kill", id)
	wait(t, d, id, 30*time.Second)
	t.Logf("the tree was gone %s after the kill", time.Since(began))
	jobs := tree(t, d, id)
	top, mid, leaf := jobs[0], named(t, jobs, "mid-killed"), named(t, jobs, "leaf-killed")
	for _, j := range jobs {
		if j.State != "done" || j.Outcome == nil || j.Outcome.Status != "cancelled" {
			t.Errorf("%s: %s %+v", j.Name, j.State, j.Outcome)
		}
	}
	if mid.Outcome.Reason != "parent_ended" || leaf.Outcome.Reason != "parent_ended" {
		t.Errorf("mid %+v, leaf %+v", mid.Outcome, leaf.Outcome)
	}
	if leaf.Timings.Settled > mid.Timings.Settled || mid.Timings.Settled > top.Timings.Settled {
		t.Errorf("not children first: leaf %d, mid %d, top %d", leaf.Timings.Settled, mid.Timings.Settled, top.Timings.Settled)
	}
	waitFor(t, "all containers to go", func() bool { return len(d.Containers()) == 0 })
}

// What a job leaves running ends with it, however it ends itself.
func TestEndOfTheParentTakesWhatItLeft(t *testing.T) {
	d := daemon(t)
	id := start(t, d, "top", `sbx run -d -p leaf --name left -- sh -c "echo up; sleep 300"
until sbx logs left | grep -q up; do sleep 0.2; done; echo bye`)
	r := wait(t, d, id, 40*time.Second)
	if r.Status != "success" || !strings.Contains(r.Summary, "bye") {
		t.Errorf("%+v %q", r.Outcome, r.Summary)
	}
	jobs := tree(t, d, id)
	left := named(t, jobs, "left")
	if left.State != "done" || left.Outcome == nil || left.Outcome.Reason != "parent_ended" || left.Timings.Settled > jobs[0].Timings.Settled {
		t.Errorf("%+v %+v, its parent %+v", left, left.Outcome, jobs[0].Timings)
	}
	waitFor(t, "all containers to go", func() bool { return len(d.Containers()) == 0 })
}
