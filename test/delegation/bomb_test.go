package delegation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/test/harness"
)

const bombing = `[profiles.bomb]
images = ["sandboxd/tiny"]
delegates = ["leaf"]
max_tree_jobs = 8
max_tree_live = 3
[profiles.bomb.limits]
memory = "512MiB"
[profiles.bomb.budget]
cpu = "120s"
output_bytes = "4MiB"
`

// A job that starts jobs as fast as it can gets no more than its tree may have, and nobody else notices.
func TestForkBombIsStoppedByTheTreesCaps(t *testing.T) {
	d := open(t, harness.Options{Config: room + family + bombing})
	id := start(t, d, "bomb", `
echo on
i=0
while [ $i -lt 100 ]; do
	for j in 1 2 3 4 5 6 7 8 9 10; do sbx run -d -p leaf -- true >>/tmp/out 2>>/tmp/err & done
	wait
	i=$((i+1))
done
echo admitted $(wc -l </tmp/out)
echo refused $(grep -c denied /tmp/err)
echo too soon $(grep -c rate_limit /tmp/err)
echo other $(grep -vc denied /tmp/err)
grep -v denied /tmp/err | head -3
`, "--cpus", "1")
	waitFor(t, "the bomb", prints(d, id, "on"))
	time.Sleep(time.Second)
	began := time.Now()
	if o := asOutsider(t, d, "run", "--image", tiny, "--", "echo", "hello"); o.Code != 0 || o.Stdout != "hello\n" {
		t.Errorf("another user's job: %+v", o)
	}
	took := time.Since(began)
	t.Logf("another user's job took %s meanwhile", took)
	if took > 10*time.Second {
		t.Errorf("another user's job took %s", took)
	}
	for {
		jobs := tree(t, d, id)
		live := 0
		for _, j := range jobs {
			if j.State != "done" {
				live++
			}
			sums(t, j)
		}
		if len(jobs) > 8 || live > 3 {
			t.Fatalf("%d jobs ever, %d live", len(jobs), live)
		}
		if jobs[0].State == "done" || time.Since(began) > 240*time.Second {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	r := wait(t, d, id, time.Second)
	out := d.Must("logs", id).Stdout
	t.Log(strings.ReplaceAll(out, "\n", "; "))
	if r.Status != "success" || !strings.Contains(out, "admitted 7\n") || !strings.Contains(out, "refused 993\n") {
		t.Errorf("%+v\n%s", r.Outcome, out)
	}
	for _, b := range tree(t, d, id)[0].Budget {
		if b.Granted != 0 {
			t.Errorf("a grant is left: %+v", b)
		}
	}
	d.Must("daemon", "status")
}

// sums holds what is spent and granted to the limit.
func sums(t *testing.T, j api.TreeJob) {
	t.Helper()
	for _, b := range j.Budget {
		if b.Limit != nil && b.Dimension != "wall_ms" && b.Spent+b.Granted > *b.Limit {
			t.Errorf("job %s: %+v", j.ID, b)
		}
	}
}

// workspace is a folder that every user may read, with nothing in it.
func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}
