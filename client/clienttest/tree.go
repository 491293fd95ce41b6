package clienttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"sandboxd/api"
)

// tree shows the job and those below it: a job's label "under" names its parent. Its label "cpu" is "spent of limit" in
// milliseconds, its label "output" what it wrote.
func (d *Daemon) tree(w http.ResponseWriter, _ *http.Request, top *fakeJob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := api.Tree{}
	d.descendLocked(&out, top)
	reply(w, http.StatusOK, out)
}

func (d *Daemon) descendLocked(out *api.Tree, j *fakeJob) {
	at := len(out.Jobs)
	out.Jobs = append(out.Jobs, api.TreeJob{
		ID: j.job.ID, Parent: j.job.Parent, Depth: j.job.Depth, Name: j.job.Name, Profile: j.job.Profile, State: j.job.State,
		Outcome: j.job.Outcome, Timings: j.job.Timings, Budget: budgetOf(j.job.Labels),
	})
	for _, child := range d.jobs {
		if child.job.Parent == j.job.ID {
			out.Jobs[at].Children++
			d.descendLocked(out, child)
		}
	}
}

func budgetOf(labels map[string]string) (lines []api.BudgetLine) {
	var spent, limit int64
	if n, _ := fmt.Sscanf(labels["cpu"], "%d of %d", &spent, &limit); n == 2 {
		lines = append(lines, api.BudgetLine{Dimension: "cpu_ms", Limit: &limit, Spent: spent, Left: ptr(max(0, limit-spent))})
	}
	if n, err := strconv.ParseInt(labels["output"], 10, 64); err == nil {
		lines = append(lines, api.BudgetLine{Dimension: "output_bytes", Spent: n, Granted: 5})
	}
	return lines
}

// orders answers a freeze or thaw, carried out by do, or lists what is frozen.
func (d *Daemon) orders(do func(api.FreezeRequest)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.faults.NoFreezing {
			refuse(w, api.Problem{Status: 403, Code: "forbidden", Detail: "freezing is the operator's", ExitCode: 120})
			return
		}
		if do != nil {
			var order api.FreezeRequest
			if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
				refuse(w, api.Problem{Status: 400, Code: "invalid", Detail: err.Error(), ExitCode: 120})
				return
			}
			do(order)
		}
		reply(w, http.StatusOK, api.FreezeList{Freezes: append([]api.Freeze{}, d.freezes...)})
	}
}

func (d *Daemon) freezeLocked(o api.FreezeRequest) {
	d.thawLocked(o)
	d.freezes = append(d.freezes, api.Freeze{Scope: o.Scope, Name: o.Name, By: "uid:0", Since: time.Now().UnixMilli()})
}

func (d *Daemon) thawLocked(o api.FreezeRequest) {
	d.freezes = slices.DeleteFunc(d.freezes, func(f api.Freeze) bool { return f.Scope == o.Scope && f.Name == o.Name })
}
