package delegation_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// denying are the profiles of the refusals: a tree that is full soon, and one of a single level.
const denying = `[profiles.strict]
images = ["sandboxd/tiny"]
delegates = ["leaf"]
max_depth = 2
trust = "trusted"
[profiles.strict.limits]
cpus = 1
memory = "256MiB"
pids = 128
nofile = 1024
timeout = "5m"
[profiles.strict.budget]
cpu = "60s"
output_bytes = "1MiB"
[profiles.flat]
images = ["sandboxd/tiny"]
delegates = ["mid", "leaf"]
max_depth = 1
[profiles.flat.limits]
memory = "256MiB"
[profiles.two-live]
images = ["sandboxd/tiny"]
delegates = ["leaf"]
max_tree_live = 2
[profiles.two-live.limits]
memory = "256MiB"
[profiles.two-live.budget]
cpu = "60s"
[profiles.two-ever]
images = ["sandboxd/tiny"]
delegates = ["leaf"]
max_tree_jobs = 2
[profiles.two-ever.limits]
memory = "256MiB"
[profiles.two-ever.budget]
cpu = "60s"
`

// asking is the shell's word for one request that must be refused: name, flags.
const asking = `
ask() {
	n=$1; shift
	sbx run "$@" -- true >/tmp/out 2>/tmp/err
	c=$?
	echo "$n|$c|$(wc -l </tmp/err)|$(tr "\n" " " </tmp/err)"
}
`

// answers reads what ask printed: the text by name.
func answers(t *testing.T, out string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for line := range strings.Lines(out) {
		part := strings.SplitN(strings.TrimSpace(line), "|", 4)
		if len(part) == 4 {
			all[part[0]] = append(all[part[0]], strings.Join(part[1:], "|"))
		}
	}
	return all
}

func TestChildAskingForMoreIsRefused(t *testing.T) {
	d := daemon(t)
	asks := []struct{ name, flags, says, allowed string }{
		{"rw", "--workspace /workspace:rw", "workspace.mode", "ro"},
		{"memory", "-m 512m", "limits.memory", "256"},
		{"cpus", "--cpus 2", "limits.cpus", "1"},
		{"pids", "--pids 4000", "limits.pids", "128"},
		{"nofile", "--nofile 4096", "limits.nofile", "1024"},
		{"image", "--image sandboxd/base", "image", "sandboxd/tiny"},
		{"longer", "--timeout 2h", "timeout", "m"},
		{"deeper", "--max-depth 9", "max_depth", "2"},
		{"more-jobs", "--max-children 9000", "max_tree_jobs", "64"},
		{"risk", "--max-risk destructive", "max_risk", "code_execution"},
		{"roster", "-p mid", "profile", "leaf"},
		{"delegates", "--delegates top", "delegates", "leaf"},
		{"outside", "--workspace /etc", "workspace", "/workspace"},
		{"mount", "-v /etc:etc", "mounts.etc", "/workspace"},
		{"trust", "--trust trusted", "trust", "untrusted"},
		{"tmp", "--tmp-size 1g", "limits.tmp_bytes", "KiB"},
		{"home", "--home-size 1g", "limits.home_bytes", "KiB"},
		{"out", "--out-size 1g", "limits.out_bytes", "KiB"},
		{"keep", "--output-keep 3g", "limits.output_keep", "512MiB"},
		{"two-at-once", "-m 512m --cpus 2", "limits.memory", "limits.cpus"},
		{"strict", "--budget cpu=100s --strict-budget", "budget.cpu", "1m0s"},
		{"strict-output", "--budget output=2MiB --strict-budget", "budget.output_bytes", "1"},
	}
	script := asking + "echo ready; until [ -f /workspace/go ]; do sleep 0.1; done\n"
	for _, a := range asks {
		p := "-p leaf "
		if a.name == "roster" {
			p = ""
		}
		script += fmt.Sprintf("ask %[1]s %[2]s; sleep 0.1; ask %[1]s %[2]s\n", a.name, p+a.flags)
	}
	script += "echo asked; until [ -f /workspace/end ]; do sleep 0.1; done"
	dir := workspace(t)
	id := start(t, d, "strict", script, "--workspace", dir)
	waitFor(t, "the parent", prints(d, id, "ready"))
	before := tree(t, d, id)
	touch(t, dir, "go")
	waitFor(t, "all answers", prints(d, id, "asked"))
	after := tree(t, d, id)
	// Output and cpu of the parent itself are its own use; what a refused child could have taken is not to be seen.
	for i := range before[0].Budget {
		b, a := before[0].Budget[i], after[0].Budget[i]
		if b.Dimension == "output_bytes" || b.Dimension == "cpu_ms" {
			b.Spent, a.Spent, b.Left, a.Left = 0, 0, nil, nil
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("the budget was touched: %+v before, %+v after", b, a)
		}
	}
	if len(after) != 1 {
		t.Errorf("children came: %+v", after[1:])
	}
	touch(t, dir, "end")
	r := wait(t, d, id, 30*time.Second)
	out := d.Must("logs", id).Stdout
	got := answers(t, out)
	for _, a := range asks {
		said := got[a.name]
		if len(said) != 2 || said[0] != said[1] {
			t.Errorf("%s: not answered twice alike: %q", a.name, said)
			continue
		}
		if !strings.HasPrefix(said[0], "120|1|") || !strings.Contains(said[0], a.says) || !strings.Contains(said[0], a.allowed) {
			t.Errorf("%s: %q; want 120, one line, naming %q and %q", a.name, said[0], a.says, a.allowed)
		}
	}
	in := inspect(t, d, id)
	denied := in.of("denied")
	for _, a := range asks {
		if !slices.ContainsFunc(denied, func(p map[string]string) bool {
			return strings.Contains(p["field"]+p["detail"], a.says)
		}) {
			t.Errorf("%s: no event of %d tells it", a.name, len(denied))
		}
	}
	if in.DenialsTotal < len(asks) || r.DenialsTotal < len(asks) {
		t.Errorf("%d denials on the record, %d in the result, want %d at least", in.DenialsTotal, r.DenialsTotal, len(asks))
	}
}

// At the bottom of its tree a job has no way to ask at all.
func TestTreeIsNoDeeper(t *testing.T) {
	d := daemon(t)
	id := start(t, d, "flat", "sbx run -p mid --name bottom -- sh -c '"+asking+`[ -e /sbx/slot/api.sock ] && echo a socket is there
ask it -p leaf; ask it -p leaf'`)
	r := wait(t, d, id, 40*time.Second)
	out := d.Sbx("logs", id)
	said := answers(t, out.Stdout)["it"]
	if r.Status != "success" || len(said) != 2 || said[0] != said[1] || !strings.HasPrefix(said[0], "120|") || strings.Contains(out.Stdout, "a socket") {
		t.Errorf("%+v %q %+v", r.Outcome, said, out)
	}
	t.Logf("a job at the bottom is told %q", said)
	if jobs := tree(t, d, id); len(jobs) != 2 {
		t.Errorf("%d jobs: %+v", len(jobs), jobs)
	}
}

// The bounds of the tree: one more at once, one more ever.
func TestTreeIsNoWider(t *testing.T) {
	for profile, script := range map[string]string{
		"two-live": `sbx run -d -p leaf -- sleep 300 >/tmp/id` + asking + `ask it -p leaf; ask it -p leaf; sbx cancel --kill $(cat /tmp/id) >/dev/null; sbx wait -q $(cat /tmp/id) 2>/dev/null`,
		"two-ever": `sbx run -p leaf -- true` + asking + `ask it -p leaf; ask it -p leaf`,
	} {
		t.Run(profile, func(t *testing.T) {
			d := daemon(t)
			id := start(t, d, profile, script+"; sleep 1")
			r := wait(t, d, id, 40*time.Second)
			out := d.Sbx("logs", id)
			said := answers(t, out.Stdout)["it"]
			if r.Status != "success" || len(said) != 2 || said[0] != said[1] || !strings.HasPrefix(said[0], "120|1|") ||
				!strings.Contains(said[0], "(tree_limit)") || !strings.Contains(said[0], "2") {
				t.Errorf("%+v %q %s", r.Outcome, said, out.Stderr)
			}
			t.Logf("told %q", said)
			jobs := tree(t, d, id)
			if len(jobs) != 2 {
				t.Errorf("%d jobs: %+v", len(jobs), jobs)
			}
			if denied := inspect(t, d, id).of("denied"); len(denied) != 2 || denied[0]["code"] != "tree_limit" {
				t.Errorf("events of the parent: %v", denied)
			}
			for _, b := range jobs[0].Budget {
				if b.Granted != 0 {
					t.Errorf("a grant is left: %+v", b)
				}
			}
		})
	}
}
