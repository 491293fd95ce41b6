package clienttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"sandboxd/api"
)

// fakeJob is one job; all fields but req are guarded by Daemon.mu.
type fakeJob struct {
	req    api.JobRequest
	job    api.Job
	stream []api.Record
	end    uint64 // offset behind the last record

	cancelled, killed bool
	reason            string
	leases            int
	stdinOpen         chan []byte   // chunks of stdin; closed at its end
	done              chan struct{} // closed with the job's end
}

func (d *Daemon) submit(w http.ResponseWriter, r *http.Request) {
	var req api.JobRequest
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		refuse(w, api.Problem{Status: 400, Code: "invalid", Detail: err.Error(), ExitCode: 120})
		return
	}
	d.mu.Lock()
	d.submits++
	cutReply := d.faults.CutSubmits > 0
	if cutReply {
		d.faults.CutSubmits--
	}
	j, known := d.byKey[req.IdempotencyKey]
	p := d.denialLocked(req)
	if p == nil && !known {
		j = d.admitLocked(req)
	}
	d.mu.Unlock()
	switch {
	case cutReply:
		panic(http.ErrAbortHandler)
	case p != nil:
		refuse(w, *p)
	case known:
		reply(w, http.StatusOK, d.view(j))
	default:
		reply(w, http.StatusCreated, d.view(j))
	}
}

func (d *Daemon) denialLocked(req api.JobRequest) *api.Problem {
	switch {
	case d.faults.Draining:
		return &api.Problem{Status: 503, Code: "draining", Detail: "the daemon is stopping", ExitCode: 125}
	case len(req.Command) == 0:
		return &api.Problem{Status: 400, Code: "invalid", Field: "command", Detail: "command: empty", ExitCode: 120}
	case req.Command[0] == "denied":
		return &api.Problem{Status: 403, Code: "not_subset", Field: "limits.memory", ExitCode: 120,
			Detail: "limits.memory: more than the profile allows", Hint: "ask for 2GiB or less, see 'sbx profiles'",
			Violations: []api.Violation{{Field: "limits.memory", Asked: "8GiB", Allowed: "2GiB", Why: "profile default"}}}
	case req.Command[0] == "broke":
		return &api.Problem{Status: 403, Code: "budget_exhausted", Detail: "nothing left to grant", ExitCode: 121}
	}
	return nil
}

func (d *Daemon) admitLocked(req api.JobRequest) *fakeJob {
	n := len(d.jobs) + 1
	id := fmt.Sprintf("%08x-7000-7000-8000-%012x", 0x0191e000+n, n)
	j := &fakeJob{req: req, stdinOpen: make(chan []byte), done: make(chan struct{})}
	j.job = api.Job{
		ID: id, Root: id, Owner: "uid:0", Name: req.Name, Command: req.Command, Image: req.Image, ImageID: "sha256:fake",
		Profile: req.Profile, State: "queued", Labels: req.Labels, Workspace: req.Workspace, Mounts: req.Mounts,
		Workdir: req.Workdir, Timings: api.Timings{Queued: time.Now().UnixMilli()},
	}
	for _, p := range d.jobs {
		if name := req.Labels["under"]; name != "" && p.job.Name == name {
			j.job.Parent, j.job.Root, j.job.Depth = p.job.ID, p.job.Root, p.job.Depth+1
		}
	}
	if j.job.Profile == "" {
		j.job.Profile = "default"
	}
	if req.Command[0] == "evil" {
		j.job.Name = "\x1b[31mevil\x1b[0m"
	}
	d.jobs = append(d.jobs, j)
	if req.IdempotencyKey != "" {
		d.byKey[req.IdempotencyKey] = j
	}
	d.eventLocked(j, "queued", nil)
	d.jobWG.Add(1)
	go d.run(j)
	if req.Lease {
		d.jobWG.Add(1)
		go d.watchLease(j)
	}
	return j
}

func (d *Daemon) eventLocked(j *fakeJob, kind string, payload map[string]string) {
	d.events = append(d.events, api.Event{
		Seq: int64(len(d.events) + 1), Time: time.Now().UnixMilli(), Job: j.job.ID, Root: j.job.Root, Type: kind, Payload: payload,
	})
	d.touchLocked()
}

func (d *Daemon) withJob(h func(http.ResponseWriter, *http.Request, *fakeJob)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ref := r.PathValue("ref")
		d.mu.Lock()
		i := slices.IndexFunc(d.jobs, func(j *fakeJob) bool {
			return len(ref) >= 4 && strings.HasPrefix(j.job.ID, ref) || j.job.Name == ref
		})
		d.mu.Unlock()
		if i < 0 {
			refuse(w, api.Problem{Status: 404, Code: "not_found", Detail: fmt.Sprintf("no job %q of yours", ref), ExitCode: 125})
			return
		}
		h(w, r, d.jobs[i])
	}
}

func (d *Daemon) view(j *fakeJob) api.Job {
	d.mu.Lock()
	defer d.mu.Unlock()
	return j.job
}

func (d *Daemon) show(w http.ResponseWriter, _ *http.Request, j *fakeJob) {
	reply(w, http.StatusOK, d.view(j))
}

func (d *Daemon) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	list := api.JobList{Jobs: []api.Job{}}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range slices.Backward(d.jobs) {
		v := j.job
		before := q.Get("before")
		if q.Has("state") && !slices.Contains(q["state"], v.State) || q.Has("name") && q.Get("name") != v.Name ||
			q.Has("root") && q.Get("root") != v.Root || before != "" && v.ID >= before ||
			slices.ContainsFunc(q["label"], func(l string) bool { k, x, _ := strings.Cut(l, "="); return v.Labels[k] != x }) {
			continue
		}
		if len(list.Jobs) == 2 { // small pages, so that paging is exercised
			list.Next = list.Jobs[1].ID
			break
		}
		list.Jobs = append(list.Jobs, v)
	}
	reply(w, http.StatusOK, list)
}

func (d *Daemon) cancel(w http.ResponseWriter, r *http.Request, j *fakeJob) {
	var req api.CancelRequest
	_ = json.NewDecoder(r.Body).Decode(&req)
	d.mu.Lock()
	if j.job.State != "done" {
		j.cancelled, j.killed, j.reason = true, j.killed || req.Kill, "by_caller"
		j.job.Cancelling = j.reason
		d.eventLocked(j, "cancel_requested", map[string]string{"kill": fmt.Sprint(req.Kill)})
	}
	d.mu.Unlock()
	reply(w, http.StatusOK, d.view(j))
}

func (d *Daemon) watchLease(j *fakeJob) {
	defer d.jobWG.Done()
	for {
		if !d.until(nil, func() bool { return j.leases == 0 || j.job.State == "done" }) || d.view(j).State == "done" {
			return
		}
		grace := d.now().LeaseGrace
		if grace == 0 {
			grace = 200 * time.Millisecond
		}
		expired := make(chan struct{})
		t := time.AfterFunc(grace, func() { close(expired) })
		back := d.until(expired, func() bool { return j.leases > 0 || j.job.State == "done" || d.shutdown })
		t.Stop()
		if back {
			continue
		}
		d.mu.Lock()
		j.cancelled, j.killed, j.reason = true, true, "lease_lost"
		d.touchLocked()
		d.mu.Unlock()
		return
	}
}

func (d *Daemon) lease(w http.ResponseWriter, r *http.Request, j *fakeJob) {
	w.Header().Set("Content-Type", api.LeaseType)
	_, _ = w.Write([]byte("\n"))
	_ = http.NewResponseController(w).Flush()
	blocks := 0
	if r.URL.Query().Get("wait") == "true" {
		blocks = 1
	}
	d.leased(j, 1, blocks)
	defer d.leased(j, -1, -blocks)
	d.until(r.Context().Done(), func() bool { return j.job.State == "done" })
}

func (d *Daemon) leased(j *fakeJob, n, blocks int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j.leases += n
	d.blocked += blocks
	d.blocks += max(0, blocks)
	d.touchLocked()
}
