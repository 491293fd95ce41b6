package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

func TestStreamBareAndAsRecords(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice)
	r.daemon.stream(j.ID).write("hello\x00\xff\n")
	c := r.as(alice)
	path := "/v1/jobs/" + string(j.ID) + "/stream"
	bare := c.get(path).want(200)
	if string(bare.body) != "hello\x00\xff\n" || bare.header.Get("Content-Type") != api.BytesType {
		t.Errorf("%q %v", bare.body, bare.header)
	}
	if got := c.get(path + "?from=5&stream=stdout").want(200); string(got.body) != "\x00\xff\n" {
		t.Errorf("%q", got.body)
	}
	if got := c.get(path + "?stream=stderr").want(200); len(got.body) != 0 {
		t.Errorf("%q", got.body)
	}
	r.daemon.finish(j.ID)
	got := c.do("GET", path+"?follow=true", "", "Accept", "text/html, "+api.StreamType+";q=1").want(200)
	if got.header.Get("Content-Type") != api.StreamType {
		t.Errorf("%v", got.header)
	}
	kinds, text := readRecords(t, bytes.NewReader(got.body))
	if text != "hello\x00\xff\n" || kinds[len(kinds)-1] != api.KindEnd {
		t.Errorf("%v %q", kinds, text)
	}
}

func readRecords(t *testing.T, r io.Reader) (kinds []uint8, text string) {
	t.Helper()
	buf := make([]byte, api.MaxRecord)
	for {
		rec, err := api.ReadRecord(r, buf)
		if errors.Is(err, io.EOF) {
			return kinds, text
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds, text = append(kinds, rec.Kind), text+string(rec.Payload)
	}
}

// A follow of a queued job is heard at once, waits, and gets every piece as soon as it is written.
func TestFollowOfAQueuedJob(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice)
	resp := r.as(alice).begin(context.Background(), "GET", "/v1/jobs/"+string(j.ID)+"/stream?follow=true", nil)
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	buf := make([]byte, 100)
	for _, piece := range []string{"a", "bc"} {
		r.daemon.stream(j.ID).write(piece)
		if n, err := io.ReadFull(resp.Body, buf[:len(piece)]); string(buf[:n]) != piece || err != nil {
			t.Fatalf("%q %v", buf[:n], err)
		}
	}
	r.daemon.finish(j.ID)
	if rest, err := io.ReadAll(resp.Body); len(rest) != 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

// At Close a follow ends cleanly and without an end record: the client knows where to go on.
func TestFollowEndsCleanlyAtClose(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice)
	r.daemon.stream(j.ID).write("so far")
	resp := r.as(alice).begin(context.Background(), "GET", "/v1/jobs/"+string(j.ID)+"/stream?follow=true", nil, "Accept", api.StreamType)
	defer resp.Body.Close()
	time.AfterFunc(50*time.Millisecond, r.close)
	kinds, text := readRecords(t, resp.Body)
	if text != "so far" || len(kinds) != 1 {
		t.Errorf("%v %q", kinds, text)
	}
}

// failing streams break off after some bytes.
type failing struct{ *daemon }

func (failing) Copy(_ context.Context, _ job.ID, w io.Writer, o server.StreamOptions, _ func()) error {
	if o.From > 0 {
		return job.Errorf(job.CodeInvalid, "from", "is beyond the stream")
	}
	_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
	return errors.New("disk error")
}

// A reply that broke off must not look whole; an error before the first byte is a problem.
func TestABrokenStreamDoesNotLookWhole(t *testing.T) {
	d := newDaemon()
	r := newRigOf(t, d, func(c *server.Config) { c.Streams = failing{d} })
	j := d.add(alice)
	c := r.as(alice)
	for _, query := range []string{"", "?follow=true"} {
		if got := c.get("/v1/jobs/" + string(j.ID) + "/stream" + query); got.err == nil {
			t.Errorf("%q ends cleanly after %d bytes", query, len(got.body))
		}
	}
	if p := c.get("/v1/jobs/"+string(j.ID)+"/stream?from=7").problem(400, job.CodeInvalid); p.Field != "from" {
		t.Errorf("%+v", p)
	}
}

// A reader that takes nothing is dropped, and holds up nobody.
func TestAStalledReaderIsDropped(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.StallTimeout = 100 * time.Millisecond })
	j := r.daemon.add(alice)
	r.daemon.stream(j.ID).write(strings.Repeat("x", 16<<20))
	conn, err := net.Dial("unix", r.path(alice))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /v1/jobs/"+string(j.ID)+"/stream?follow=true HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the reader is served", func() bool { return r.server.OpenConns() == 1 })
	eventually(t, "the reader is dropped", func() bool { return r.server.OpenConns() == 0 })
}

// A write deadline of one request does not reach into the next on the same connection.
func TestDeadlinesDoNotOutliveTheirRequest(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.StallTimeout, c.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond })
	j := r.daemon.add(alice)
	c := r.as(alice)
	for range 3 {
		c.get("/v1/jobs/" + string(j.ID) + "/stream").want(200)
		time.Sleep(80 * time.Millisecond)
		c.get("/v1/jobs/" + string(j.ID) + "/result?wait=80ms").want(202)
	}
	if n := r.server.OpenConns(); n != 1 {
		t.Errorf("%d connections, want the one that was kept", n)
	}
}
