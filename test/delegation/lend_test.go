package delegation_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandboxd/test/harness"
)

const onePlace = "[capacity]\nmax_running = 1\n[engine]\nwarm_slots = 0\n"

// Three levels that wait on each other pass through one place, for those that wait are frozen.
func TestThreeLevelsInOnePlace(t *testing.T) {
	d := harness.New(t, harness.Options{Config: onePlace + family})
	id := start(t, d, "top", `sbx run -p mid --name mid -- sh -c 'sbx run -p leaf --name leaf -- sh -c "sleep 2; echo leaf"; echo mid'; echo top`)
	deadline := time.Now().Add(60 * time.Second)
	waiting := map[string]bool{}
	for {
		jobs := tree(t, d, id)
		running := 0
		for _, j := range jobs {
			if j.State == "waiting" {
				waiting[j.Profile] = true
			}
			if j.State == "running" || j.State == "starting" {
				running++
			}
		}
		if jobs[0].State == "done" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("stuck:\n%s", d.Sbx("tree", id).Stdout)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if out := d.Must("logs", id).Stdout; out != "leaf\nmid\ntop\n" {
		t.Errorf("%q", out)
	}
	if !waiting["top"] || !waiting["mid"] {
		t.Errorf("seen waiting: %v", waiting)
	}
}

// Probe 108: what burns while a background process waits burns nothing while the place is lent.
func TestLentPlaceBurnsNothing(t *testing.T) {
	d := harness.New(t, harness.Options{Config: onePlace + family})
	id := start(t, d, "top", `(sbx run -p leaf --name sleeper -- sleep 6; touch /tmp/over) &
until [ -f /tmp/over ]; do :; done; echo over`)
	waitFor(t, "the child to run in its parent's place", func() bool {
		jobs := tree(t, d, id)
		return len(jobs) == 2 && jobs[0].State == "waiting" && jobs[1].State == "running"
	})
	slot := inspect(t, d, id).Slot
	if slot == nil || slot.ContainerID == "" {
		t.Fatal("the parent's container is not told")
	}
	before := cpuOf(t, slot.ContainerID)
	time.Sleep(2 * time.Second)
	used := cpuOf(t, slot.ContainerID) - before
	if jobs := tree(t, d, id); jobs[0].State != "waiting" {
		t.Fatalf("the parent is %s already", jobs[0].State)
	}
	t.Logf("%s of cpu in 2 s of lending", used)
	if used > 200*time.Millisecond {
		t.Errorf("the parent used %s of cpu while its place was lent", used)
	}
	if r := wait(t, d, id, 40*time.Second); r.Status != "success" || !strings.Contains(r.Summary, "over") {
		t.Errorf("%+v %q", r.Outcome, r.Summary)
	}
}

// cpuOf is the processor time of a container so far, by the kernel's own count.
func cpuOf(t *testing.T, container string) time.Duration {
	t.Helper()
	out, err := exec.Command("docker", "inspect", "-f", "{{.State.Pid}}", container).Output()
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(out))
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%s/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if part[1] != "" && !strings.Contains(","+part[1]+",", ",cpuacct,") {
			continue
		}
		for _, mount := range []string{"/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct"} {
			path := part[2]
			for _, p := range []string{path, filepath.Dir(path)} {
				if b, err := os.ReadFile(filepath.Join(mount, p, "cpuacct.usage")); err == nil {
					n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
					return time.Duration(n)
				}
			}
		}
	}
	t.Fatalf("no cpu count of container %s in:\n%s", container, groups)
	return 0
}
