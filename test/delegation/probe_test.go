package delegation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/test/harness"
)

// Probe 107.
func TestWhatOnlyTheOperatorSetsIsRefusedByName(t *testing.T) {
	d := daemon(t)
	asks := map[string]string{
		"egress.mode":    `"egress":{"mode":"report"}`,
		"budget.inherit": `"budget":{"inherit":"operator"}`,
		"timeout":        `"timeout":0`,
		"max_depth":      `"max_depth":0`,
		"max_tree_jobs":  `"max_tree_jobs":0`,
		"max_tree_live":  `"max_tree_live":0`,
	}
	for _, l := range []string{"cpus", "memory", "pids", "nofile", "tmp_bytes", "home_bytes", "out_bytes", "disk_bytes", "output_keep"} {
		asks["limits."+l] = fmt.Sprintf(`"limits":{%q:0}`, l)
	}
	for _, b := range []string{"wall", "cpu", "egress_bytes", "output_bytes", "artifact_bytes", "input_tokens", "output_tokens", "tool_calls", "cost_micro_usd"} {
		asks["budget."+b] = fmt.Sprintf(`"budget":{%q:0}`, b)
	}
	for field, ask := range asks {
		var p api.Problem
		status := d.Post("/v1/jobs", `{"command":["true"],"profile":"top",`+ask+`}`, &p)
		if status < 400 || status >= 500 || p.Field != field || p.ExitCode != 120 {
			t.Errorf("%s: %d %+v", field, status, p)
		}
	}
}

// Probe 110: whoever waits with one job does not stand behind thousands of somebody else's.
func TestOneJobDoesNotWaitForThousands(t *testing.T) {
	const many = 2000
	relay := harness.NewRelay(t)
	d := open(t, harness.Options{Config: onePlace, Engine: "unix://" + relay.Path})
	began := time.Now()
	var wg sync.WaitGroup
	var next, refused atomic.Int64
	client := d.HTTP()
	for range 8 {
		wg.Go(func() {
			for next.Add(1) <= many {
				res, err := client.Post("http://sandboxd/v1/jobs", "application/json", strings.NewReader(`{"command":["true"],"image":"sandboxd/tiny"}`))
				if err != nil {
					t.Error(err)
					return
				}
				var j api.Job
				_ = json.NewDecoder(res.Body).Decode(&j)
				if res.Body.Close(); res.StatusCode != 201 {
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d jobs queued in %s", many, time.Since(began))
	if refused.Load() > 0 {
		t.Fatalf("%d refused", refused.Load())
	}
	o := asOutsider(t, d, "run", "-d", "--image", tiny, "--name", "one", "--", "true")
	if o.Code != 0 {
		t.Fatalf("%+v", o)
	}
	id := strings.TrimSpace(o.Stdout)
	relay.Up()
	r := wait(t, d, id, 60*time.Second)
	var done []api.Job
	d.JSON(&done, "ps", "-a", "--json", "-f", "state=done")
	before := 0
	for _, j := range done {
		if j.ID != id && j.Timings.Started > 0 && j.Timings.Started < r.Timings.Started {
			before++
		}
	}
	t.Logf("%d jobs started before it", before)
	if r.Status != "success" || before > 1 {
		t.Errorf("%+v; %d jobs of the other user started before it", r.Outcome, before)
	}
}
