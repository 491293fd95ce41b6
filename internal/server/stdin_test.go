package server_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandboxd/internal/job"
)

// taking is a job that takes input.
func (r *rig) taking() job.Job {
	return r.daemon.add(alice, func(j *job.Job) { j.State, j.Spec.Stdin = job.Running, job.StdinStream })
}

// send puts a body to a job's stdin and returns what will be the answer.
func (r *rig) send(j job.Job, body io.Reader) <-chan *http.Response {
	c, out := r.as(alice), make(chan *http.Response, 1)
	go func() {
		resp := c.begin(context.Background(), "PUT", "/v1/jobs/"+string(j.ID)+"/stdin", body)
		_ = resp.Body.Close()
		out <- resp
	}()
	return out
}

func (r *rig) opened(j job.Job) *fakeStdin {
	r.Helper()
	eventually(r.T, "stdin is open", func() bool { return r.daemon.stdin(j.ID) != nil })
	return r.daemon.stdin(j.ID)
}

func status(t *testing.T, answer <-chan *http.Response) int {
	t.Helper()
	select {
	case resp := <-answer:
		return resp.StatusCode
	case <-time.After(10 * time.Second):
		t.Fatal("no answer")
		return 0
	}
}

// The daemon holds no more of the input than a buffer: the sender waits for the command.
func TestStdinWaitsForTheCommand(t *testing.T) {
	r := newRig(t)
	j := r.taking()
	rest := &countingReader{left: 64 << 20}
	answer := r.send(j, rest)
	in := r.opened(j)
	time.Sleep(100 * time.Millisecond)
	if read := rest.read(); read > 4<<20 {
		t.Errorf("%d bytes were taken from the sender while the command took none", read)
	}
	total := 0
	for total < 64<<20 {
		total += len(<-in.takes)
	}
	if got := status(t, answer); got != 204 {
		t.Errorf("status %d", got)
	}
	<-in.closed
}

func TestStdinRefusals(t *testing.T) {
	r := newRig(t)
	c := r.as(alice)
	none := r.daemon.add(alice)
	if p := c.do("PUT", "/v1/jobs/"+string(none.ID)+"/stdin", "x").problem(409, job.CodeConflict); !strings.Contains(p.Detail, "stdin_stream") {
		t.Errorf("%+v", p)
	}
	done := r.taking()
	r.daemon.finish(done.ID)
	c.do("PUT", "/v1/jobs/"+string(done.ID)+"/stdin", "x").problem(409, job.CodeConflict)

	j := r.taking()
	body, w := io.Pipe()
	answer := r.send(j, body)
	in := r.opened(j)
	if p := c.do("PUT", "/v1/jobs/"+string(j.ID)+"/stdin", "x").problem(409, job.CodeConflict); !strings.Contains(p.Detail, "another client") {
		t.Errorf("%+v", p)
	}
	_ = w.Close()
	if got := status(t, answer); got != 204 {
		t.Errorf("status %d", got)
	}
	<-in.closed
}

// The end of the job ends the sending, whether the sender is silent or the command does not read.
func TestStdinEndsWithTheJob(t *testing.T) {
	for name, body := range map[string]io.Reader{
		"a silent sender":              silent(t),
		"a command that does not read": strings.NewReader(strings.Repeat("x", 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			j := r.taking()
			answer := r.send(j, body)
			r.opened(j)
			r.daemon.finish(j.ID)
			if got := status(t, answer); got != 409 {
				t.Errorf("status %d", got)
			}
		})
	}
}

func TestStdinOfAQueuedJobWaitsForIt(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.Spec.Stdin = job.StdinStream })
	answer := r.send(j, strings.NewReader("hello"))
	time.Sleep(50 * time.Millisecond)
	j.State = job.Running
	r.daemon.put(j)
	in := r.opened(j)
	if got := string(<-in.takes); got != "hello" {
		t.Errorf("%q", got)
	}
	<-in.closed
	if got := status(t, answer); got != 204 {
		t.Errorf("status %d", got)
	}
	queued := r.daemon.add(alice, func(j *job.Job) { j.Spec.Stdin = job.StdinStream })
	answer = r.send(queued, strings.NewReader("hello"))
	time.Sleep(50 * time.Millisecond)
	r.daemon.finish(queued.ID)
	if got := status(t, answer); got != 409 {
		t.Errorf("status %d after a job that never ran", got)
	}
}

func TestACommandThatReadsNoMoreIsNoFaultOfOurs(t *testing.T) {
	r := newRig(t)
	j := r.taking()
	answer := r.send(j, &countingReader{left: 1 << 20})
	in := r.opened(j)
	in.deaf.Store(true)
	// A write that was on its way before is taken; how many were is open.
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case <-in.takes:
			case <-over:
				return
			}
		}
	}()
	if got := status(t, answer); got != 409 {
		t.Errorf("status %d", got)
	}
}

func TestStdinEndsAtClose(t *testing.T) {
	r := newRig(t)
	j := r.taking()
	answer := r.send(j, silent(t))
	in := r.opened(j)
	time.AfterFunc(20*time.Millisecond, r.close)
	if got := status(t, answer); got != 503 {
		t.Errorf("status %d", got)
	}
	select {
	case <-in.closed:
		t.Error("the command saw an end of input because the daemon stopped")
	default:
	}
}

// A body that broke off does not look complete to the command, and another request may go on.
func TestABrokenSenderDoesNotEndTheInput(t *testing.T) {
	r := newRig(t)
	j := r.taking()
	conn := r.dial(alice)
	if _, err := io.WriteString(conn, "PUT /v1/jobs/"+string(j.ID)+"/stdin HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	in := r.opened(j)
	if got := string(<-in.takes); got != "half" {
		t.Errorf("%q", got)
	}
	_ = conn.Close()
	<-in.ctx.Done()
	select {
	case <-in.closed:
		t.Error("the command saw an end of input")
	default:
	}
	eventually(t, "another may send", func() bool {
		return r.as(alice).do("PUT", "/v1/jobs/"+string(j.ID)+"/stdin", "").status != 409
	})
}

// countingReader gives zeros and counts them.
type countingReader struct {
	left  int
	given atomic.Int64
}

func (r *countingReader) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), r.left)
	clear(b[:n])
	r.left -= n
	r.given.Add(int64(n))
	return n, nil
}

func (r *countingReader) read() int64 { return r.given.Load() }

// silent is a body that never gives a byte and does not end before the test does.
func silent(t *testing.T) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	return r
}
