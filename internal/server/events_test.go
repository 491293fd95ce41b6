package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"sandboxd/api"
)

func readEvents(t *testing.T, body io.Reader) (out []api.Event) {
	t.Helper()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		var e api.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func TestEvents(t *testing.T) {
	r := newRig(t)
	c := r.as(alice)
	got := c.get("/v1/events").want(200)
	if len(got.body) != 0 || got.header.Get("Content-Type") != api.EventsType {
		t.Errorf("%q %v", got.body, got.header)
	}
	r.daemon.happen("uid:1001", "queued", 600)
	r.daemon.happen("uid:1002", "done", 3)
	resp := c.begin(context.Background(), "GET", "/v1/events?after=10", nil)
	defer resp.Body.Close()
	events := readEvents(t, resp.Body)
	if len(events) != 590 || events[0].Seq != 11 || events[589].Seq != 600 || events[0].Time != 5 {
		t.Errorf("%d events", len(events))
	}
}

func TestEventsFollowUntilClose(t *testing.T) {
	r := newRig(t)
	r.daemon.happen("uid:1001", "queued", 1)
	resp := r.as(alice).begin(context.Background(), "GET", "/v1/events?follow=true", nil)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		if line, err := lines.ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
		if i < 2 {
			r.daemon.happen("uid:1001", "running", 1)
		}
	}
	time.AfterFunc(20*time.Millisecond, r.close)
	if rest, err := io.ReadAll(lines); len(rest) != 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}
