package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// uids of callers in tests.
const (
	alice = 1001
	bob   = 1002
)

// asCaller gives every connection of a listener one caller.
type asCaller struct {
	net.Listener
	caller job.Caller
}

type callerConn struct {
	*net.UnixConn
	caller job.Caller
}

func (c callerConn) Caller() job.Caller { return c.caller }

func (l asCaller) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return callerConn{c.(*net.UnixConn), l.caller}, nil
}

// rig is a server over real unix sockets, one for each caller.
type rig struct {
	*testing.T
	daemon  *daemon
	server  *server.Server
	dir     string
	serving sync.WaitGroup
}

func newRig(t *testing.T, change ...func(*server.Config)) *rig {
	t.Helper()
	return newRigOf(t, newDaemon(), change...)
}

func newRigOf(t *testing.T, d *daemon, change ...func(*server.Config)) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbx") // t.TempDir is too long for a socket's path in some names of tests
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := server.Config{
		Jobs: d, Records: d, Streams: d, Status: d, Node: "local",
		PollDone: 20 * time.Millisecond, PollEvents: 5 * time.Millisecond, LeaseBeat: 10 * time.Millisecond,
	}
	for _, f := range change {
		f(&cfg)
	}
	r := &rig{T: t, daemon: d, server: server.New(cfg), dir: dir}
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.server.Close(ctx); err != nil {
		r.Errorf("Close: %v", err)
	}
	r.serving.Wait()
}

// serve lets the server answer on a listener.
func (r *rig) serve(l net.Listener) {
	r.serving.Go(func() {
		if err := r.server.Serve(context.Background(), l); err != nil {
			r.Errorf("Serve: %v", err)
		}
	})
}

// path is the socket on which everybody is the caller with this uid.
func (r *rig) path(uid uint32) string {
	r.Helper()
	c := job.HostCaller(uid, uid, nil, 1, uid == 0)
	path := filepath.Join(r.dir, strings.ReplaceAll(c.Principal, ":", ""))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		r.Fatal(err)
	}
	r.serve(asCaller{l, c})
	return path
}

// as is a client that is this user.
func (r *rig) as(uid uint32) *client {
	r.Helper()
	return newClient(r.T, r.path(uid))
}

// dial opens a bare connection as this user.
func (r *rig) dial(uid uint32) net.Conn {
	r.Helper()
	c, err := net.Dial("unix", r.path(uid))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close() })
	return c
}

type client struct {
	t    *testing.T
	http *http.Client
}

func newClient(t *testing.T, path string) *client {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &client{t, &http.Client{Transport: tr}}
}

// reply is one answer, read whole.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
	err    error // of reading the body
}

// begin sends a request and returns before the body of the answer is read.
func (c *client) begin(ctx context.Context, method, path string, body io.Reader, header ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://sandboxd"+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	documented(c.t, method, req.URL.EscapedPath(), resp)
	return resp
}

func (c *client) do(method, path, body string, header ...string) reply {
	c.t.Helper()
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	resp := c.begin(context.Background(), method, path, rd, header...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{c.t, resp.StatusCode, resp.Header, b, err}
}

func (c *client) get(path string) reply { c.t.Helper(); return c.do("GET", path, "") }

func (r reply) want(status int) reply {
	r.t.Helper()
	if r.status != status || r.err != nil {
		r.t.Fatalf("status %d (%v), want %d; body %.300s", r.status, r.err, status, r.body)
	}
	return r
}

// problem checks that the answer is a problem with this status and code.
func (r reply) problem(status int, code job.Code) api.Problem {
	r.t.Helper()
	r.want(status)
	var p api.Problem
	if got := r.header.Get("Content-Type"); got != api.ProblemType {
		r.t.Fatalf("Content-Type %q, want %q; body %.300s", got, api.ProblemType, r.body)
	}
	r.into(&p)
	if p.Code != string(code) || p.Status != status {
		r.t.Fatalf("code %q status %d, want %q %d; body %s", p.Code, p.Status, code, status, r.body)
	}
	return p
}

func (r reply) into(v any) {
	r.t.Helper()
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		r.t.Fatalf("%v in %.300s", err, r.body)
	}
}

func (r reply) job() api.Job { r.t.Helper(); var j api.Job; r.into(&j); return j }

// documented fails where an answer has a status that the table, and so openapi.yaml, does not know.
func documented(t *testing.T, method, path string, resp *http.Response) {
	t.Helper()
	for _, d := range server.RouteDocs() {
		if !strings.EqualFold(d.Method, method) || !matches(d.Path, path) {
			continue
		}
		if d.Replies[resp.StatusCode] == nil && !slices.Contains(d.Errors, resp.StatusCode) {
			t.Errorf("%s %s answers %d, which is not documented", method, d.Path, resp.StatusCode)
		}
	}
}

func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != "{ref}" && want[i] != got[i] {
			return false
		}
	}
	return true
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}
