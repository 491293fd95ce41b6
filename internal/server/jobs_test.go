package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

func TestSubmitAnswersCreatedAndARepeatOK(t *testing.T) {
	r := newRig(t)
	c := r.as(alice)
	body := `{"command":["echo","<hi> & bye"],"name":"greet","idempotency_key":"k1"}`
	first := c.do("POST", api.PathJobs, body).want(201)
	j := first.job()
	if got := first.header.Get("Location"); got != "/v1/jobs/"+j.ID {
		t.Errorf("Location %q", got)
	}
	if !strings.Contains(string(first.body), "<hi> & bye") {
		t.Errorf("the command is not readable: %s", first.body)
	}
	again := c.do("POST", api.PathJobs, body).want(200).job()
	if diff := cmp.Diff(j, again); diff != "" {
		t.Error(diff)
	}
	if j.Owner != "uid:1001" || j.Name != "greet" {
		t.Errorf("owner %q name %q", j.Owner, j.Name)
	}
}

func TestSubmitRefusals(t *testing.T) {
	c := newRig(t).as(alice)
	huge := `{"command":["` + strings.Repeat("x", api.MaxBodyBytes) + `"]}`
	for name, tc := range map[string]struct {
		body   string
		status int
		code   job.Code
		field  string
		detail string
	}{
		"unknown field":   {`{"command":["a"],"limits":{"memroy":1}}`, 400, job.CodeInvalid, "limits.memroy", "did you mean memory?"},
		"by admission":    {`{"command":[]}`, 400, job.CodeInvalid, "command", "is empty"},
		"empty body":      {``, 400, job.CodeInvalid, "", "not JSON"},
		"over the bound":  {huge, 413, job.CodeTooLarge, "", "more than"},
		"trailing object": {`{"command":["a"]}{}`, 400, job.CodeInvalid, "", "after top-level value"},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			p := c.do("POST", api.PathJobs, tc.body).problem(tc.status, tc.code)
			if p.Field != tc.field || !strings.Contains(p.Detail, tc.detail) || p.ExitCode != job.ExitDenied {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestGetShowsDetails(t *testing.T) {
	r := newRig(t)
	r.daemon.add(bob)
	j := r.daemon.add(alice, func(j *job.Job) {
		j.Spec.Env = []job.EnvVar{{Name: "TOKEN", Value: "hush"}}
		j.CancelReason = job.ReasonByCaller
	})
	reply := r.as(alice).get("/v1/jobs/" + string(j.ID)).want(200)
	if strings.Contains(string(reply.body), "hush") {
		t.Errorf("a value of the environment is shown: %s", reply.body)
	}
	got := reply.job()
	if got.EnvNames[0] != "TOKEN" || got.Cancelling != "by_caller" || got.Position != 2 || got.Slot.ID != "s1" || got.Envelope[0].Field != "memory" {
		t.Errorf("%+v", got)
	}
}

func TestRefs(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.ID = "01900000-0000-7000-8000-00000000000a"; j.Spec.Name = "build" })
	r.daemon.add(alice, func(j *job.Job) { j.ID = "01900000-0000-7000-8000-00000000000b" })
	c := r.as(alice)
	for name, tc := range map[string]struct {
		ref    string
		status int
	}{
		"whole id":             {string(j.ID), 200},
		"name":                 {"build", 200},
		"escaped name":         {"%62uild", 200},
		"ambiguous prefix":     {"0190", 400},
		"unknown":              {"abcdef", 404},
		"dots":                 {"..", 400},
		"escaped dots":         {"%2e%2e", 400},
		"escaped slash":        {"%2e%2e%2fx", 400},
		"a path":               {"../x", 404},
		"an escaped path":      {"%2e%2e/x", 404},
		"NUL":                  {"build%00", 400},
		"space":                {"a%20b", 400},
		"very long":            {strings.Repeat("a", 64), 400},
		"longer still":         {strings.Repeat("a", 9000), 400},
		"longer than a header": {strings.Repeat("a", 20000), 431},
		"empty":                {"", 404},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, r.path(alice))
			if tc.status == 431 {
				resp, err := c.http.Get("http://sandboxd/v1/jobs/" + tc.ref)
				if err != nil || resp.StatusCode != 431 {
					t.Fatal(resp, err)
				}
				_ = resp.Body.Close()
				return
			}
			c.get("/v1/jobs/" + tc.ref).want(tc.status)
		})
	}
	if got := c.get("/v1/jobs/build").job().ID; got != string(j.ID) {
		t.Errorf("name led to %s", got)
	}
}

// Every verb answers a stranger's job exactly as one that never was.
func TestAnotherUsersJobIsNotThere(t *testing.T) {
	r := newRig(t)
	mine := r.daemon.add(alice, func(j *job.Job) { j.Spec.Stdin, j.Spec.Lease, j.Spec.Name = job.StdinStream, true, "mine" })
	never := "01900000-0000-7000-8000-000000000000"
	c := r.as(bob)
	for _, d := range server.RouteDocs() {
		if !strings.Contains(d.Path, "{ref}") {
			continue
		}
		t.Run(d.Method+" "+d.Path, func(t *testing.T) {
			c := newClient(t, r.path(bob))
			ask := func(ref string) string {
				body := ""
				if d.HasBody {
					body = "{}"
				}
				got := c.do(strings.ToUpper(d.Method), strings.ReplaceAll(d.Path, "{ref}", ref), body)
				got.problem(404, job.CodeNotFound)
				return strings.ReplaceAll(string(got.body), ref, "REF")
			}
			if a, b := ask(string(mine.ID)), ask(never); a != b {
				t.Errorf("answers differ:\n%s\n%s", a, b)
			}
			if a, b := ask("mine"), ask("nobody"); a != b {
				t.Errorf("answers differ:\n%s\n%s", a, b)
			}
		})
	}
	var list api.JobList
	c.get("/v1/jobs").want(200).into(&list)
	if len(list.Jobs) != 0 {
		t.Errorf("bob sees %v", list.Jobs)
	}
	c.get("/v1/jobs?root="+string(mine.ID)).problem(404, job.CodeNotFound)
	r.as(0).get("/v1/jobs/" + string(mine.ID)).want(200)
	if len(r.daemon.allCancels()) != 0 {
		t.Error("bob cancelled something")
	}
}

func TestListFiltersAndPages(t *testing.T) {
	r := newRig(t)
	root := r.daemon.add(alice, func(j *job.Job) { j.Spec.Name = "root" })
	for i := range 70 {
		r.daemon.add(alice, func(j *job.Job) {
			j.Root, j.Parent = root.ID, root.ID
			j.Spec.Labels = map[string]string{"n": fmt.Sprint(i % 7), "e": ""}
			if i%2 == 0 {
				j.State = job.Running
			}
		})
	}
	c := r.as(alice)
	count := func(query string) int {
		t.Helper()
		var list api.JobList
		c.get("/v1/jobs?" + query).want(200).into(&list)
		return len(list.Jobs)
	}
	for query, want := range map[string]int{
		"":                             71,
		"state=running":                35,
		"state=running&state=queued":   71,
		"state=running,queued":         71,
		"label=n=3":                    10,
		"label=n=3&label=e=":           10,
		"name=root":                    1,
		"root=root":                    71,
		"parent=root&state=running":    35,
		"limit=5":                      5,
		"label=n%3D3&limit=500&name=x": 0,
	} {
		if got := count(query); got != want {
			t.Errorf("%q lists %d, want %d", query, got, want)
		}
	}
	seen := map[string]bool{}
	for query := "limit=9"; ; {
		var list api.JobList
		c.get("/v1/jobs?" + query).want(200).into(&list)
		for _, j := range list.Jobs {
			seen[j.ID] = true
		}
		if list.Next == "" {
			break
		}
		query = "limit=9&before=" + list.Next
	}
	if len(seen) != 71 {
		t.Errorf("pages hold %d jobs, want 71", len(seen))
	}
}

func TestAPageOfALongListingEndsEarly(t *testing.T) {
	r := newRig(t)
	for range 20 {
		r.daemon.add(alice, func(j *job.Job) { j.Spec.Command = []string{strings.Repeat("x", 1<<20)} })
	}
	var list api.JobList
	r.as(alice).get("/v1/jobs").want(200).into(&list)
	if n := len(list.Jobs); n < 4 || n > 5 || list.Next != list.Jobs[n-1].ID {
		t.Errorf("%d jobs, next %q", n, list.Next)
	}
}

func TestBadParameters(t *testing.T) {
	c := newRig(t).as(alice)
	for query, field := range map[string]string{
		"/v1/jobs?stat=queued":              "stat",
		"/v1/jobs?state=quued":              "state",
		"/v1/jobs?limit=0":                  "limit",
		"/v1/jobs?limit=501":                "limit",
		"/v1/jobs?limit=%2B5":               "limit",
		"/v1/jobs?limit=1e2":                "limit",
		"/v1/jobs?limit=1&limit=2":          "limit",
		"/v1/jobs?label=nokey":              "label",
		"/v1/jobs?label=a=1&label=a=2":      "label",
		"/v1/jobs?before=0190":              "before",
		"/v1/jobs?root=../x":                "root",
		"/v1/jobs?name=":                    "name",
		"/v1/jobs?a;b":                      "",
		"/v1/jobs/abcd/result?wait=11m":     "wait",
		"/v1/jobs/abcd/result?wait=-1s":     "wait",
		"/v1/jobs/abcd/result?wait=soon":    "wait",
		"/v1/jobs/abcd/stream?from=-1":      "from",
		"/v1/jobs/abcd/stream?follow=yes":   "follow",
		"/v1/jobs/abcd/stream?stream=stdin": "stream",
		"/v1/events?after=x":                "after",
		"/v1/events?follow=":                "follow",
		"/v1/version?x":                     "x",
	} {
		if p := c.get(query).problem(400, job.CodeInvalid); p.Field != field {
			t.Errorf("%s: field %q, want %q", query, p.Field, field)
		}
	}
	if p := c.get("/v1/jobs?stat=queued").problem(400, job.CodeInvalid); !strings.Contains(p.Detail, "did you mean state?") {
		t.Errorf("%+v", p)
	}
}

func TestCancelIsIdempotent(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Running })
	c := r.as(alice)
	path := "/v1/jobs/" + string(j.ID) + "/cancel"
	for _, body := range []string{"", " ", "{}", `{"kill":false}`} {
		if got := c.do("POST", path, body).want(200).job(); got.Cancelling != "by_caller" {
			t.Errorf("%+v", got)
		}
	}
	r.as(0).do("POST", path, `{"kill":true}`).want(200)
	r.daemon.finish(j.ID)
	if got := c.do("POST", path, "").want(200).job(); got.State != "done" || got.Outcome.Status != "success" {
		t.Errorf("a cancel after the end changed it: %+v", got)
	}
	cancels := r.daemon.allCancels()
	last := cancels[len(cancels)-1]
	if len(cancels) != 5 || last != (cancelled{"uid:0", j.ID, true, job.ReasonByOperator}) {
		t.Errorf("%+v", cancels)
	}
	for body, want := range map[string]string{`{"Kill":true}`: "Kill", `{"kill":1}`: "kill", `[]`: ""} {
		if p := c.do("POST", path, body).problem(400, job.CodeInvalid); p.Field != want {
			t.Errorf("%+v", p)
		}
	}
}

// A cancel that races the end of the job answers with the job, whichever won.
func TestCancelRacingTheEnd(t *testing.T) {
	r := newRig(t)
	c := r.as(alice)
	for range 300 {
		j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Running })
		var race sync.WaitGroup
		race.Go(func() { r.daemon.finish(j.ID) })
		c.do("POST", "/v1/jobs/"+string(j.ID)+"/cancel", "").want(200)
		race.Wait()
		c.get("/v1/jobs/" + string(j.ID) + "/result?wait=5s").want(200)
	}
}

// ending is a scheduler whose jobs end while they are being cancelled.
type ending struct {
	*daemon
	ends bool
}

func (e ending) Cancel(_ context.Context, _ job.Caller, id job.ID, _ bool, _ job.Reason) (job.Job, error) {
	if e.ends {
		e.finish(id)
	}
	return job.Job{}, job.Errorf(job.CodeConflict, "", "fenced")
}

func TestACancelThatComesTooLateIsNoError(t *testing.T) {
	for name, ends := range map[string]bool{"the job ended": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon()
			r := newRigOf(t, d, func(c *server.Config) { c.Jobs = ending{d, ends} })
			j := d.add(alice, func(j *job.Job) { j.State = job.Running })
			got := r.as(alice).do("POST", "/v1/jobs/"+string(j.ID)+"/cancel", "")
			if !ends {
				got.problem(409, job.CodeConflict)
				return
			}
			if shown := got.want(200).job(); shown.State != "done" {
				t.Errorf("%+v", shown)
			}
		})
	}
}
