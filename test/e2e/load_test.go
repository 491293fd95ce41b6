package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sandboxd/api"
	"sandboxd/test/harness"
)

// 200 jobs through 8 places: every outcome right, every output exact, nothing labelled left in the engine, and the
// daemon has not grown.
func TestTwoHundredJobsThroughEightPlaces(t *testing.T) {
	const jobs, places = 200, 8
	d := harness.New(t, harness.Options{Config: wide})
	d.Must("run", "--image", tiny, "--", "true")
	before := memory(t, d.Pid())
	var wg sync.WaitGroup
	next := make(chan int)
	for range 2 * places {
		wg.Go(func() {
			for i := range next {
				one(t, d, i)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wg.Wait()
	waitFor(t, "all containers but the warm ones to go", func() bool { return len(d.Containers()) <= 2 })
	after := memory(t, d.Pid())
	t.Logf("resident memory of the daemon: %d MiB before, %d MiB after %d jobs", before>>20, after>>20, jobs)
	if after > before+64<<20 {
		t.Errorf("the daemon grew from %d to %d bytes", before, after)
	}
	var h api.Health
	d.JSON(&h, "daemon", "status", "--json")
	if h.Running != 0 || h.Queued != 0 || h.Cleanups != 0 {
		t.Errorf("%+v", h)
	}
	instance := d.Instance()
	d.Stop()
	if left := d.Containers(); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(d.Dir, "run", "slots", "*")); len(left) > 0 {
		t.Errorf("slot folders are left: %v", left)
	}
	for _, controller := range []string{"memory", "pids", "freezer"} {
		if left, _ := filepath.Glob("/sys/fs/cgroup/" + controller + "/sandboxd-" + instance[:8] + "/*/job"); len(left) > 0 {
			t.Errorf("cgroups are left: %v", left)
		}
	}
}

func one(t *testing.T, d *harness.Daemon, i int) {
	kinds := []struct {
		script string
		exit   int
		status string
	}{
		{"echo %d", 0, "success"},
		{"echo %d; exit 3", 3, "error"},
		{"echo %d; kill -9 $$", 137, "error"},
		{"echo %d; sleep 100 & exit 0", 0, "success"},
	}
	k := kinds[i%len(kinds)]
	name := fmt.Sprintf("load%d", i)
	o := d.Sbx("run", "--name", name, "--image", tiny, "--", "sh", "-c", fmt.Sprintf(k.script, i))
	if o.Code != k.exit || o.Stdout != fmt.Sprintf("%d\n", i) {
		t.Errorf("job %d: %+v, want exit %d", i, o, k.exit)
		return
	}
	var r api.Result
	d.JSON(&r, "result", "--json", name)
	if r.Status != k.status {
		t.Errorf("job %d: %+v", i, r.Outcome)
	}
}

// memory is a process's resident memory in bytes.
func memory(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
