package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/internal/admission"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

// Probe 62, the transport's part: a thousand requests at once from one job. 50 pass and then 50 a second; the others
// are refused at once with a code that says so; nobody else notices.
func TestAThousandRequestsOfAJob(t *testing.T) {
	r := newRig(t)
	flooder, quiet := r.daemon.add(alice), r.daemon.add(alice)
	host, other := r.as(bob), r.asJob(quiet)
	host.get("/v1/version").want(200)
	other.get("/v1/version").want(200)

	counts := map[int]int{}
	var mu sync.Mutex
	var flood sync.WaitGroup
	started := time.Now()
	for range 8 {
		c := r.asJob(flooder)
		flood.Go(func() {
			for range 125 {
				resp, err := c.http.Post("http://x"+api.PathJobs, api.JSONType, strings.NewReader(`{"command":["true"]}`))
				if err != nil {
					continue // a refusal ends its connection
				}
				if resp.StatusCode == 429 && resp.Header.Get("Retry-After") == "" {
					t.Error("a refusal without Retry-After")
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				mu.Lock()
				counts[resp.StatusCode]++
				mu.Unlock()
			}
		})
	}
	slowest := time.Duration(0)
	for range 40 {
		began := time.Now()
		host.get("/v1/version").want(200)
		other.get("/v1/version").want(200)
		slowest = max(slowest, time.Since(began))
	}
	flood.Wait()
	most := 51 + int(50*time.Since(started).Seconds())
	if counts[201] < 50 || counts[201] > most || counts[429] < 100 || len(counts) != 2 {
		t.Errorf("%v, want at most %d created", counts, most)
	}
	if slowest > 2*time.Second {
		t.Errorf("others waited up to %s", slowest)
	}
	r.asJob(quiet).do("POST", api.PathJobs, `{"command":["true"]}`).want(201)
	time.Sleep(time.Second)
	r.asJob(flooder).do("POST", api.PathJobs, `{"command":["true"]}`).want(201)
	r.asJob(flooder).get("/v1/version").want(200)
}

// gatekeeper lets submits in only when the test says so.
type gatekeeper struct {
	*daemon
	open chan struct{}
}

func (g gatekeeper) Submit(ctx context.Context, c job.Caller, r admission.Request) (job.Job, bool, error) {
	select {
	case <-g.open:
	case <-ctx.Done():
	}
	return g.daemon.Submit(ctx, c, r)
}

// Eight requests are answered at once. Those that follow or wait count apart, so that the job can still cancel.
func TestRequestsOfAJobAtOnce(t *testing.T) {
	d := newDaemon()
	g := gatekeeper{d, make(chan struct{})}
	r := newRigOf(t, d, func(c *server.Config) { c.Jobs = g })
	j := d.add(alice)
	child := d.add(alice, under(j))
	var busy sync.WaitGroup
	defer busy.Wait()
	defer close(g.open)
	for range 8 {
		c := r.asJob(j)
		busy.Go(func() { c.do("POST", api.PathJobs, `{"command":["true"]}`).want(201) })
	}
	c := r.asJob(j)
	eventually(t, "eight are busy", func() bool {
		return r.server.OpenConns() >= 8 && c.get("/v1/version").status == 429
	})
	if p := c.get("/v1/version").problem(429, job.CodeRateLimit); !strings.Contains(p.Detail, "at once") {
		t.Errorf("%+v", p)
	}
	resp := r.asJob(j).begin(t.Context(), "GET", "/v1/jobs/"+string(child.ID)+"/stream?follow=true", nil)
	_ = resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("following answers %d", resp.StatusCode)
	}
}

func TestAJobThatFollowsAllItsChildrenCanStillCancel(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice)
	child := r.daemon.add(alice, under(j), func(j *job.Job) { j.State = job.Running })
	follow := func() *http.Response {
		return r.asJob(j).begin(t.Context(), "GET", "/v1/jobs/"+string(child.ID)+"/stream?follow=true", nil)
	}
	for range 14 {
		resp := follow()
		defer resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	resp := follow()
	_ = resp.Body.Close()
	if resp.StatusCode != 429 {
		t.Errorf("the fifteenth answers %d", resp.StatusCode)
	}
	r.asJob(j).do("POST", "/v1/jobs/"+string(child.ID)+"/cancel", "").want(200)
}

// Probe 54 from inside: a job opens connections and never speaks. It gets sixteen; the host and other jobs get theirs.
func TestConnectionsOfAJob(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.MaxConns, c.MaxConnsJobs = 8, 64 })
	flooder, sibling, others := r.daemon.add(alice), r.daemon.add(alice), r.daemon.add(bob)
	path := r.inside(flooder)
	for range 200 {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	eventually(t, "it has as many as it may", func() bool { return r.server.OpenConns() == 16 })
	p := r.asJob(flooder).get("/v1/version").problem(429, job.CodeRateLimit)
	if !strings.Contains(p.Detail, "16 connections") {
		t.Errorf("%+v", p)
	}
	r.asJob(sibling).get("/v1/version").want(200)
	r.as(alice).get("/v1/version").want(200)

	// All of one owner's jobs together leave room for another's.
	for range 8 {
		j := r.daemon.add(alice)
		for range 16 {
			c, err := net.Dial("unix", r.inside(j))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
	}
	eventually(t, "they have half of all", func() bool { return r.server.OpenConns() >= 32 })
	r.asJob(others).get("/v1/version").want(200)
	r.as(bob).get("/v1/version").want(200)
}

// Large bodies from jobs wait for each other, and for nobody else.
func TestBodiesOfJobsHaveTheirOwnRoom(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.BodyTimeout = 20 * time.Second })
	for range 8 {
		c, err := net.Dial("unix", r.inside(r.daemon.add(alice)))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 6291456\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are open", func() bool { return r.server.OpenConns() == 8 })
	started := time.Now()
	r.as(alice).do("POST", api.PathJobs, `{"command":["true"]}`).want(201)
	r.asJob(r.daemon.add(bob)).do("POST", api.PathJobs, `{"command":["true"]}`).want(201)
	if d := time.Since(started); d > 5*time.Second {
		t.Errorf("others waited %s", d)
	}
}
