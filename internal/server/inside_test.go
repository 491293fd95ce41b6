package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

// clan is a tree of jobs: root, its children a and b, their children aa and bb, and a stranger of the same owner.
type clan struct {
	*rig
	jobs map[string]job.Job
}

func newClan(t *testing.T, change ...func(*server.Config)) clan {
	c := clan{newRig(t, change...), map[string]job.Job{}}
	for _, pair := range [][2]string{{"root", ""}, {"a", "root"}, {"b", "root"}, {"aa", "a"}, {"bb", "b"}, {"stranger", ""}} {
		changes := []func(*job.Job){named(pair[0]), func(j *job.Job) {
			j.State, j.Spec.Stdin, j.Spec.Lease = job.Running, job.StdinStream, true
		}}
		if pair[1] != "" {
			changes = append(changes, under(c.jobs[pair[1]]))
		}
		c.jobs[pair[0]] = c.daemon.add(alice, changes...)
	}
	return c
}

func (c clan) id(name string) string { return string(c.jobs[name].ID) }

// Every verb answers a job about its ancestors, siblings and strangers as about a job that never was.
func TestAJobIsToldNothingOfOthers(t *testing.T) {
	c := newClan(t)
	never := "01900000-0000-7000-8000-000000000000"
	for _, d := range server.RouteDocs() {
		if !strings.Contains(d.Path, "{ref}") {
			continue
		}
		t.Run(d.Method+" "+d.Path, func(t *testing.T) {
			in := newClient(t, c.inside(c.jobs["a"]))
			ask := func(ref string) string {
				body := ""
				if d.HasBody {
					body = "{}"
				}
				got := in.do(strings.ToUpper(d.Method), strings.ReplaceAll(d.Path, "{ref}", ref), body)
				got.problem(404, job.CodeNotFound)
				return strings.ReplaceAll(string(got.body), ref, "REF")
			}
			want := ask(never)
			for _, name := range []string{"root", "b", "bb", "stranger"} {
				if got := ask(c.id(name)); got != want {
					t.Errorf("%s:\n%s\n%s", name, got, want)
				}
			}
			if got := ask("stranger"); got != strings.ReplaceAll(want, never, "stranger") {
				t.Errorf("by name: %s", got)
			}
		})
	}
	if n := len(c.daemon.allCancels()); n != 0 {
		t.Errorf("%d jobs were cancelled", n)
	}
}

func TestAJobSeesItselfAndItsDescendants(t *testing.T) {
	c := newClan(t)
	in := c.asJob(c.jobs["a"])
	for query, want := range map[string]string{"": "a aa", "?parent=a": "aa", "?name=b": "", "?name=aa": "aa"} {
		var list api.JobList
		in.get("/v1/jobs" + query).want(200).into(&list)
		var got []string
		for _, j := range list.Jobs {
			got = append(got, j.Name)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%q lists %v, want %q", query, got, want)
		}
	}
	in.get("/v1/jobs?root=root").problem(404, job.CodeNotFound)
	in.get("/v1/jobs/a").want(200)
	in.get("/v1/jobs/aa").want(200)
	in.get("/v1/jobs/aa/result").want(202)
	c.daemon.stream(c.jobs["aa"].ID).write("hello")
	if got := in.get("/v1/jobs/aa/stream").want(200); string(got.body) != "hello" {
		t.Errorf("its child said %q", got.body)
	}
	in.do("POST", "/v1/jobs/aa/cancel", "").want(200)
	want := []cancelled{{By: "job:" + c.id("a"), ID: c.jobs["aa"].ID, Reason: job.ReasonByCaller}}
	if diff := cmp.Diff(want, c.daemon.allCancels()); diff != "" {
		t.Error(diff)
	}
}

func TestAJobReadsEventsOfItsDescendants(t *testing.T) {
	c := newClan(t)
	for name, j := range c.jobs {
		c.daemon.happenTo(j, "of "+name)
	}
	resp := c.asJob(c.jobs["a"]).begin(t.Context(), "GET", "/v1/events", nil)
	defer resp.Body.Close()
	var got []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var e api.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Type)
	}
	slices.Sort(got)
	if fmt.Sprint(got) != "[of a of aa]" {
		t.Errorf("%v", got)
	}
}

func (d *daemon) happenTo(j job.Job, what string) {
	d.happen(j.Owner, what, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.eventLog[len(d.eventLog)-1].Job = j.ID
}

// A job must not outlive its caller by holding its own lease, block its caller's input, or wait for ever for itself.
func TestWhatAJobMayNotDoToItself(t *testing.T) {
	c := newClan(t)
	in := c.asJob(c.jobs["a"])
	for path, method := range map[string]string{"cancel": "POST", "stdin": "PUT", "lease": "GET", "result?wait=10s": "GET"} {
		body := ""
		if method != "GET" {
			body = "{}"
		}
		if p := in.do(method, "/v1/jobs/a/"+path, body).problem(403, job.CodeForbidden); !strings.HasPrefix(p.Detail, "a job cannot") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	in.get("/v1/jobs/a/result").want(202)
	in.get("/v1/jobs/a/stream").want(200)
	c.as(alice).do("POST", "/v1/jobs/a/cancel", "").want(200)
}

func TestAJobHoldsTheLeaseAndFeedsTheInputOfItsChild(t *testing.T) {
	c := newClan(t)
	child := c.jobs["aa"].ID
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := c.asJob(c.jobs["a"]).begin(ctx, "GET", "/v1/jobs/aa/lease?wait=true", nil)
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
	fed := make(chan reply)
	go func() { fed <- c.asJob(c.jobs["a"]).do("PUT", "/v1/jobs/aa/stdin", "input") }()
	eventually(t, "the input is open", func() bool { return c.daemon.stdin(child) != nil })
	if got := <-c.daemon.stdin(child).takes; string(got) != "input" {
		t.Errorf("%q", got)
	}
	(<-fed).want(204)
}

// Paths of the host, and what concerns other jobs, are not for a job.
func TestWhatAJobIsNotShown(t *testing.T) {
	c := newClan(t)
	at := func(j *job.Job) {
		j.Spec.Workspace = &job.Workspace{Path: "/srv/secret/project", Mode: job.WorkspaceRO}
		j.Spec.Mounts = []job.Mount{{Source: "/srv/secret/data", Name: "data"}}
	}
	j := c.daemon.add(alice, under(c.jobs["a"]), at, named("placed"))
	in := c.asJob(c.jobs["a"])
	for _, path := range []string{"/v1/jobs", "/v1/jobs/placed", "/v1/jobs/placed/result", "/v1/jobs/placed/tree"} {
		got := in.get(path)
		if strings.Contains(string(got.body), "secret") || strings.Contains(string(got.body), `"slot"`) || strings.Contains(string(got.body), `"position"`) {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	got := in.get("/v1/jobs/placed").job()
	if got.Workspace.Path != "/workspace" || got.Workspace.Mode != "ro" || got.Mounts[0] != (api.Mount{Source: "/mnt/data", Name: "data"}) {
		t.Errorf("%+v", got)
	}
	if got := c.as(alice).get("/v1/jobs/placed").job(); got.Workspace.Path != "/srv/secret/project" || got.Mounts[0].Source != "/srv/secret/data" || got.Slot == nil {
		t.Errorf("its owner sees %+v", got)
	}
	var h api.Health
	in.get("/v1/health").want(200).into(&h)
	if h.Status != "ok" || len(h.Notes) != 0 {
		t.Errorf("%+v", h)
	}
	c.daemon.mu.Lock()
	c.daemon.finishLocked(j.ID, job.Outcome{Status: job.Failed, Reason: job.ReasonStartFailed})
	done := c.daemon.jobs[j.ID]
	done.Result.Evidence = []string{"docker: /srv/secret"}
	c.daemon.jobs[j.ID] = done
	c.daemon.mu.Unlock()
	for who, shown := range map[*client]bool{in: false, c.as(alice): true} {
		if got := who.get("/v1/jobs/placed/result").want(200); strings.Contains(string(got.body), "secret") != shown {
			t.Errorf("the result: %s", got.body)
		}
	}
}

// The waiter hears of a job that blocks on a descendant, before it does and before it is answered; of nobody else.
func TestTheWaiterIsTold(t *testing.T) {
	o := &operator{}
	c := newClan(t, withOperator(o))
	told := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, o.noted()); diff != "" {
			t.Errorf("the waiter was told:\n%s", diff)
		}
		o.mu.Lock()
		o.calls = nil
		o.mu.Unlock()
	}
	in, pair := c.asJob(c.jobs["a"]), "job:"+c.id("a")+" on "+c.id("aa")
	c.as(alice).get("/v1/jobs/aa/result?wait=1ms").want(202)
	in.get("/v1/jobs/aa/result").want(202)
	told()
	in.get("/v1/jobs/aa/result?wait=1ms").want(202)
	told("wait "+pair, "release "+pair)

	answers := make(chan reply)
	go func() { answers <- in.get("/v1/jobs/aa/result?wait=1m") }()
	eventually(t, "it waits", func() bool { return len(o.noted()) == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	resp := in.begin(ctx, "GET", "/v1/jobs/aa/lease?wait=true", nil)
	eventually(t, "it waits twice", func() bool { return len(o.noted()) == 2 })
	cancel()
	_ = resp.Body.Close()
	eventually(t, "the lease is let go", func() bool { return len(o.noted()) == 3 })
	c.daemon.finish(c.jobs["aa"].ID)
	(<-answers).want(200)
	told("wait "+pair, "wait "+pair, "release "+pair, "release "+pair)

	in.get("/v1/jobs/aa/result?wait=1m").want(200) // it is done
	told()
	o.fault = job.Errorf(job.CodeCapacity, "", "waiting would never end")
	c.asJob(c.jobs["b"]).get("/v1/jobs/bb/result?wait=1m").problem(403, job.CodeCapacity)
	c.asJob(c.jobs["b"]).get("/v1/jobs/bb/lease?wait=true").problem(403, job.CodeCapacity)
}

func TestDetailsTellOfBudgetAndDenials(t *testing.T) {
	c := newClan(t, withOperator(&operator{}))
	c.daemon.mu.Lock()
	j := c.daemon.jobs[c.jobs["a"].ID]
	j.Spec.Role = "reviewer"
	c.daemon.jobs[j.ID] = j
	c.daemon.mu.Unlock()
	got := c.asJob(c.jobs["a"]).get("/v1/jobs/a").want(200).job()
	if len(got.Budget) != 1 || *got.Budget[0].Left != 50 || got.Trust != "untrusted" || got.MaxRisk != "safe" || got.Delegation.Role != "reviewer" {
		t.Errorf("%+v", got)
	}
	want := []api.Denial{{Kind: "delegation", Code: "not_subset", Field: "limits.memory", Detail: "more than its parent has", Time: 7}}
	if diff := cmp.Diff(want, got.Denials); diff != "" || got.DenialsTotal != 3 {
		t.Errorf("%d in all:\n%s", got.DenialsTotal, diff)
	}
}
