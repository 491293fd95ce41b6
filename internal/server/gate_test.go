package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/internal/admission"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

// Probe 54: ten thousand connections that never speak. They are bounded, they end, and others are served meanwhile.
func TestTenThousandSilentConnections(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.HeaderTimeout = 500 * time.Millisecond })
	path := r.path(alice)
	other := r.as(bob)
	other.get("/v1/version").want(200)
	before := runtime.NumGoroutine()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	most, goroutines := 0, 0
	for i := range 10_000 {
		c, err := net.Dial("unix", path)
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EMFILE) {
			continue // the backlog is full, or this test has no more descriptors
		}
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
		if i%100 == 0 {
			most, goroutines = max(most, r.server.OpenConns()), max(goroutines, runtime.NumGoroutine())
		}
	}
	other.get("/v1/version").want(200)
	if len(conns) < 5000 || most > 256+1 {
		t.Errorf("%d connected; the server had %d of them open, want at most 257", len(conns), most)
	}
	if grown := goroutines - before; grown > 2*512+64+64 {
		t.Errorf("%d more goroutines", grown)
	}
	eventually(t, "the silent ones are dropped", func() bool { return r.server.OpenConns() <= 1 })
	r.as(alice).get("/v1/version").want(200)
}

// fill opens n connections that have been served once and stay.
func (r *rig) fill(uid uint32, n int) {
	r.Helper()
	for range n {
		r.as(uid).get("/v1/version").want(200)
	}
}

func TestBoundsOnConnections(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.MaxConns, c.MaxConnsOne = 10, 6 })
	r.fill(alice, 6)
	got := r.as(alice).get("/v1/version")
	if p := got.problem(429, job.CodeQuota); !strings.Contains(p.Detail, "6 connections") {
		t.Errorf("%+v", p)
	}
	r.fill(bob, 4)
	r.as(bob).get("/v1/version").problem(503, job.CodeUnavailable)
	r.fill(0, 3) // an admin still gets in
	if n := r.server.OpenConns(); n != 13 {
		t.Errorf("%d connections open", n)
	}
}

// Probe 78: a request that trickles in ends after the bound, in its header and in its body.
func TestSlowLoris(t *testing.T) {
	for name, tc := range map[string]struct{ begin, drip string }{
		"header": {"GET /v1/version HTTP/1.1\r\nHost: x\r\n", "X-A: b\r\n"},
		"body":   {"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{", " "},
		"chunks": {"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", "1\r\n \r\n"},
		"cancel": {"POST /v1/jobs/loris/cancel HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", " "},
		"unread": {"DELETE /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", " "},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *server.Config) { c.HeaderTimeout, c.BodyTimeout = 200*time.Millisecond, 200*time.Millisecond })
			r.daemon.add(alice, func(j *job.Job) { j.Spec.Name = "loris" })
			conn := r.dial(alice)
			if _, err := io.WriteString(conn, tc.begin); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is open", func() bool { return r.server.OpenConns() == 1 })
			started := time.Now()
			for {
				if _, err := io.WriteString(conn, tc.drip); err != nil {
					break
				}
				if time.Since(started) > 5*time.Second {
					t.Fatal("still open")
				}
				time.Sleep(20 * time.Millisecond)
			}
			eventually(t, "it is closed", func() bool { return r.server.OpenConns() == 0 })
		})
	}
}

func TestASlowBodyIsToldSo(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.BodyTimeout = 50 * time.Millisecond })
	resp := r.as(alice).begin(context.Background(), "POST", api.PathJobs, silent(t))
	defer resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// Bodies that claim to be large wait for room, so that their sum is bounded; small ones pass beside them.
func TestLargeBodiesAreReadAFewAtATime(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.BodyTimeout = 300 * time.Millisecond })
	for range 8 {
		conn := r.dial(alice)
		if _, err := io.WriteString(conn, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 6291456\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are open", func() bool { return r.server.OpenConns() == 8 })
	r.as(bob).do("POST", api.PathJobs, `{"command":["true"]}`).want(201)
	r.as(alice).do("POST", api.PathJobs, `{"command":["true"]}`).want(201) // once the others have timed out
}

// A connection on which a request was answered is closed after the idle time.
func TestAnIdleConnectionIsClosed(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.IdleTimeout = 50 * time.Millisecond })
	conn := r.dial(alice)
	if _, err := io.WriteString(conn, "GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	eventually(t, "closed", func() bool { return r.server.OpenConns() == 0 })
}

// Close does not wait for connections that never asked, nor for those that follow.
func TestCloseIsPrompt(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.Spec.Lease = true })
	r.dial(alice)
	half := r.dial(alice)
	if _, err := io.WriteString(half, "GET /v1/ver"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/stream?follow=true", "/lease"} {
		resp := r.as(alice).begin(context.Background(), "GET", "/v1/jobs/"+string(j.ID)+path, nil)
		defer resp.Body.Close()
	}
	r.as(alice).get("/v1/version").want(200)
	eventually(t, "all are open", func() bool { return r.server.OpenConns() == 5 })
	started := time.Now()
	r.close()
	if d := time.Since(started); d > 2*time.Second {
		t.Errorf("Close took %s", d)
	}
	if n := r.server.OpenConns(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	r.close() // again
}

// stuck is a store that answers only when its caller gives up.
type stuck struct{ *daemon }

func (s stuck) Submit(ctx context.Context, _ job.Caller, _ admission.Request) (job.Job, bool, error) {
	<-ctx.Done()
	return job.Job{}, false, ctx.Err()
}

// A request that does not end is cut off when the time of Close is over.
func TestCloseCutsOffWhatDoesNotEnd(t *testing.T) {
	d := newDaemon()
	r := newRigOf(t, d, func(c *server.Config) { c.Jobs = stuck{d} })
	conn := r.dial(alice)
	if _, err := io.WriteString(conn, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n{\"command\":[\"a\"]}"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := r.server.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	if n := r.server.OpenConns(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

func TestServeRefusesABadConfig(t *testing.T) {
	d := newDaemon()
	for name, cfg := range map[string]server.Config{
		"no dependencies":  {},
		"a negative bound": {Jobs: d, Records: d, Streams: d, Status: d, MaxConns: -1},
		"a negative time":  {Jobs: d, Records: d, Streams: d, Status: d, IdleTimeout: -1},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("unix", t.TempDir()+"/s")
			if err != nil {
				t.Fatal(err)
			}
			s := server.New(cfg)
			if err := s.Serve(context.Background(), l); err == nil {
				t.Error("it serves")
			}
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The end of Serve's context cuts requests off.
func TestTheEndOfTheContextEndsServing(t *testing.T) {
	r := newRig(t)
	l, err := net.Listen("unix", r.dir+"/own")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.server.Serve(ctx, asCaller{l, job.HostCaller(alice, alice, nil, 1, false)}) }()
	j := r.daemon.add(alice)
	resp := newClient(t, r.dir+"/own").begin(context.Background(), "GET", "/v1/jobs/"+string(j.ID)+"/stream?follow=true", nil)
	defer resp.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
}

// A listener that does not know its callers is not served.
func TestAConnectionWithoutCallerIsRefused(t *testing.T) {
	r := newRig(t)
	l, err := net.Listen("unix", r.dir+"/plain")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.server.Serve(context.Background(), l) }()
	c, err := net.Dial("unix", r.dir+"/plain")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "does not know its caller") {
		t.Error(err)
	}
}
