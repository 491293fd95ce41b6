package delegation_test

import (
	"strings"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/test/harness"
)

// An operator's order that nothing more starts holds in its scope, over a restart, until it is taken back.
func TestFreezeHoldsUntilThaw(t *testing.T) {
	d := open(t, harness.Options{Config: room + family})
	dir := workspace(t)
	tree := start(t, d, "top", asking+`ask before -p leaf
echo asked; until [ -f /workspace/go ]; do sleep 0.1; done
ask frozen -p leaf; echo again; until [ -f /workspace/thawed ]; do sleep 0.1; done
ask after -p leaf`, "--workspace", dir)
	waitFor(t, "the tree", prints(d, tree, "asked"))

	frozen := func(scope string, args ...string) {
		t.Helper()
		o := d.Sbx(append([]string{"run", "--image", tiny}, args...)...)
		if o.Code != 120 || !strings.Contains(o.Stderr, "(frozen)") || strings.Count(o.Stderr, "\n") != 1 {
			t.Errorf("%s: %+v", scope, o)
		}
	}
	d.Must("freeze", "--profile", "mid")
	d.Must("freeze", "--tree", tree)
	frozen("profile", "-p", "mid", "--", "true")
	d.Must("run", "--image", tiny, "-p", "leaf", "--", "true")
	d.Kill()
	d.Start("")
	var list []api.Freeze
	if d.JSON(&list, "freeze", "--json"); len(list) != 2 {
		t.Errorf("after a restart: %+v", list)
	}
	frozen("profile after a restart", "-p", "mid", "--", "true")
	touch(t, dir, "go")
	waitFor(t, "the frozen tree's request", prints(d, tree, "again"))
	d.Must("thaw", "--profile", "mid")
	d.Must("thaw", "--tree", tree)
	d.Must("run", "--image", tiny, "-p", "mid", "--", "true")
	touch(t, dir, "thawed")
	wait(t, d, tree, 30*time.Second)
	got := answers(t, d.Must("logs", tree).Stdout)
	for name, code := range map[string]string{"before": "0|", "frozen": "120|1|", "after": "0|"} {
		if len(got[name]) != 1 || !strings.HasPrefix(got[name][0], code) || (name == "frozen") != strings.Contains(strings.Join(got[name], ""), "(frozen)") {
			t.Errorf("%s: %q", name, got[name])
		}
	}

	d.Must("freeze", "--all")
	frozen("all", "--", "true")
	d.Must("thaw", "--all")
	d.Must("run", "--image", tiny, "--", "true")

	for _, args := range [][]string{{"freeze"}, {"freeze", "--all"}, {"thaw", "--all"}, {"freeze", "--profile", "leaf"}} {
		if o := asOutsider(t, d, args...); o.Code != 120 || !strings.Contains(o.Stderr, "(forbidden)") {
			t.Errorf("%q by another user: %+v", args, o)
		}
	}
	if o := d.Sbx("run", "--image", tiny, "-p", "top", "--", "sh", "-c", "sbx freeze --all; sbx freeze --tree $SANDBOXD_JOB"); o.Code == 0 || strings.Count(o.Stderr, "(forbidden)") != 2 {
		t.Errorf("from a job: %+v", o)
	}
	if d.JSON(&list, "freeze", "--json"); len(list) != 0 {
		t.Errorf("left frozen: %+v", list)
	}
}
