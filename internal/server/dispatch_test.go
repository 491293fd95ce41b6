package server_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

func TestUnknownPathsAndMethods(t *testing.T) {
	c := newRig(t).as(alice)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/jobs/", "//v1/jobs", "/v2/jobs", "/v1/job", "/v1/jobs/abcd/", "/v1/jobs/abcd/x", "/V1/jobs", "/v1/../v1/version", "/v1/%6aobs"} {
		c.get(path).problem(404, job.CodeNotFound)
	}
	for path, allow := range map[string]string{
		"/v1/jobs":             "GET, POST",
		"/v1/jobs/abcd":        "GET",
		"/v1/jobs/abcd/cancel": "POST",
		"/v1/jobs/abcd/stdin":  "PUT",
		"/v1/version":          "GET",
	} {
		got := c.do("DELETE", path, "")
		if got.problem(405, job.CodeInvalid); got.header.Get("Allow") != allow {
			t.Errorf("%s allows %q, want %q", path, got.header.Get("Allow"), allow)
		}
	}
}

func TestABodyWhereNoneBelongsIsRefused(t *testing.T) {
	c := newRig(t).as(alice)
	p := c.do("GET", "/v1/version", "{}").problem(400, job.CodeInvalid)
	if !strings.Contains(p.Detail, "takes no body") {
		t.Errorf("%+v", p)
	}
}

func TestStatusRoutes(t *testing.T) {
	c := newRig(t).as(alice)
	var v api.VersionInfo
	c.get("/v1/version").want(200).into(&v)
	if v.Product != "sandboxd" || v.API != 1 {
		t.Errorf("%+v", v)
	}
	var h api.Health
	c.get("/v1/health").want(200).into(&h)
	if h.Notes[0] != "for uid:1001" {
		t.Errorf("%+v", h)
	}
	var p api.ProfileList
	c.get("/v1/profiles").want(200).into(&p)
	if p.Profiles[0].Name != "default" {
		t.Errorf("%+v", p)
	}
}

// A fault of ours shows a number to look for in the log, and nothing of its cause.
func TestFaultsOfOursAreNotShown(t *testing.T) {
	for name, fault := range map[string]error{
		"a bare error":      errors.New("open /var/lib/secret/path: no space"),
		"an internal error": job.Wrap(job.CodeInternal, errors.New("/secret"), "secret words"),
		"an unknown code":   job.Errorf("odd", "", "secret words"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.daemon.fault = fault
			got := r.as(alice).get("/v1/jobs/abcd")
			p := got.problem(500, job.CodeInternal)
			if strings.Contains(string(got.body), "secret") || !strings.Contains(p.Hint, "request=") {
				t.Errorf("%s", got.body)
			}
		})
	}
	t.Run("a cause of another code", func(t *testing.T) {
		r := newRig(t)
		r.daemon.fault = job.Wrap(job.CodeUnavailable, errors.New("dial /secret"), "the store is busy")
		got := r.as(alice).get("/v1/jobs")
		if got.status != 503 || strings.Contains(string(got.body), "secret") {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	t.Run("a panic", func(t *testing.T) {
		r := newRig(t)
		r.daemon.panics = true
		c := r.as(alice)
		c.get("/v1/jobs/abcd").problem(500, job.CodeInternal)
		c.get("/v1/version").want(200)
	})
}

// The log has the cause under the number that the problem names, and nothing of what was sent.
func TestTheLogHasTheCause(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(c *server.Config) { c.Log = zerolog.New(zerolog.SyncWriter(&log)) })
	c := r.as(alice)
	j := c.do("POST", api.PathJobs, `{"command":["login","hunter2"],"env":{"K":"hunter2"}}`).want(201).job()
	c.get("/v1/jobs/" + j.ID).want(200)
	r.daemon.mu.Lock()
	r.daemon.fault = errors.New("the disk is on fire")
	r.daemon.mu.Unlock()
	p := c.get("/v1/jobs/"+j.ID).problem(500, job.CodeInternal)
	r.close()
	for _, want := range []string{`"error":"the disk is on fire"`, `"request":3`, `"caller":"uid:1001"`, `"route":"/v1/jobs/{ref}"`, `"job":"` + j.ID, `"level":"error"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in\n%s", want, log.String())
		}
	}
	if !strings.Contains(p.Hint, "request=3") || strings.Contains(log.String(), "hunter2") {
		t.Errorf("%+v\n%s", p, log.String())
	}
}
