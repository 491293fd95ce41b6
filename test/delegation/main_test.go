package delegation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/test/harness"
)

const tiny = "sandboxd/tiny:latest"

// outsider is a host user that owns nothing and is no admin.
const outsider = 65534

// room lets four small jobs run at once, and keeps no container that is nobody's.
const room = `[capacity]
max_running = 4
max_running_per_user = 4
cpus = 16
[engine]
warm_slots = 0
`

// family are the profiles of most tests: top may start mid and leaf, mid may start leaf.
const family = `[profiles.top]
images = ["sandboxd/tiny"]
delegates = ["mid", "leaf"]
max_depth = 2
[profiles.top.limits]
memory = "256MiB"
pids = 128
[profiles.mid]
images = ["sandboxd/tiny"]
delegates = ["leaf"]
max_depth = 2
[profiles.mid.limits]
memory = "256MiB"
[profiles.leaf]
images = ["sandboxd/tiny"]
[profiles.leaf.limits]
memory = "256MiB"
`

func TestMain(m *testing.M) { harness.Main(m) }

// daemon is the one that the tests share which need no other configuration.
func daemon(t *testing.T) *harness.Daemon {
	t.Helper()
	d := harness.Shared(t, harness.Options{Config: room + family + denying + bombing + spending})
	t.Cleanup(func() {
		if t.Failed() {
			log := d.Log()
			t.Logf("the end of the daemon's log:\n%s", log[max(0, len(log)-4000):])
		}
	})
	return d
}

// open is a daemon whose socket everybody's group may use, so that users can be told apart.
func open(t *testing.T, o harness.Options) *harness.Daemon {
	t.Helper()
	d := harness.Prepare(t, o)
	text, err := os.ReadFile(d.Config)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("[socket]\n"), fmt.Appendf(nil, "[socket]\ngroup = %q\n", "nogroup"), 1)
	if err := os.WriteFile(d.Config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	d.Start(o.Engine, o.Env...)
	return d
}

// asOutsider runs sbx as another user.
func asOutsider(t *testing.T, d *harness.Daemon, args ...string) harness.Output {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := d.Command(ctx, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: outsider, Gid: outsider}}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("sbx %q: %v", args, err)
	}
	return harness.Output{Stdout: out.String(), Stderr: errs.String(), Code: cmd.ProcessState.ExitCode()}
}

// run is sbx run of a shell script under a profile.
func run(t *testing.T, d *harness.Daemon, profile, script string, flags ...string) harness.Output {
	t.Helper()
	return d.Sbx(command(profile, script, flags...)...)
}

// start is run without waiting; it returns the job's id.
func start(t *testing.T, d *harness.Daemon, profile, script string, flags ...string) string {
	t.Helper()
	id := strings.TrimSpace(d.Must(command(profile, script, append(flags, "-d")...)...).Stdout)
	t.Cleanup(func() { d.Sbx("cancel", "--kill", id) })
	return id
}

func command(profile, script string, flags ...string) []string {
	args := append([]string{"run", "--image", tiny, "-p", profile}, flags...)
	return append(args, "--", "sh", "-c", script)
}

// inspected is what sbx inspect tells of a job.
type inspected struct {
	api.Job
	Result *api.Result `json:"result"` // stands for the job's word of that name
	Events []api.Event `json:"events"`
}

func inspect(t *testing.T, d *harness.Daemon, id string) inspected {
	t.Helper()
	var all []inspected
	if d.JSON(&all, "inspect", "--events", id); len(all) != 1 {
		t.Fatalf("%d jobs of the name %s", len(all), id)
	}
	return all[0]
}

func (i inspected) of(kind string) (found []map[string]string) {
	for _, e := range i.Events {
		if e.Type == kind {
			found = append(found, e.Payload)
		}
	}
	return found
}

// tree is a job with all below it, from the host.
func tree(t *testing.T, d *harness.Daemon, id string) []api.TreeJob {
	t.Helper()
	var trees []api.Tree
	if d.JSON(&trees, "tree", "--json", id); len(trees) != 1 {
		t.Fatalf("%d trees", len(trees))
	}
	return trees[0].Jobs
}

// named finds a job of a tree by its name.
func named(t *testing.T, jobs []api.TreeJob, name string) api.TreeJob {
	t.Helper()
	at := slices.IndexFunc(jobs, func(j api.TreeJob) bool { return j.Name == name })
	if at < 0 {
		t.Fatalf("there is no job %s among %+v", name, jobs)
	}
	return jobs[at]
}

// pot is one dimension of a job's budget.
func pot(t *testing.T, j api.TreeJob, dimension string) api.BudgetLine {
	t.Helper()
	at := slices.IndexFunc(j.Budget, func(b api.BudgetLine) bool { return b.Dimension == dimension })
	if at < 0 {
		t.Fatalf("job %s has no budget %s: %+v", j.Name, dimension, j.Budget)
	}
	return j.Budget[at]
}

// wait is the result of a job that ends in time.
func wait(t *testing.T, d *harness.Daemon, id string, within time.Duration) api.Result {
	t.Helper()
	if o := d.Sbx("wait", "--quiet", "--timeout", within.String(), id); strings.Contains(o.Stderr, "has not ended") {
		t.Fatalf("job %s has not ended within %s; its tree:\n%s\nits output:\n%s", id, within, d.Sbx("tree", id).Stdout, d.Sbx("logs", id).Stdout)
	}
	var r api.Result
	d.JSON(&r, "result", "--json", id)
	return r
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

func prints(d *harness.Daemon, id, text string) func() bool {
	return func() bool { return strings.Contains(d.Sbx("logs", id).Stdout, text) }
}
