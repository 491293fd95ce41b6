package client_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/client"
	"sandboxd/client/clienttest"
)

func TestStdinArrivesWholeWithItsEnd(t *testing.T) {
	_, c := pair(t)
	job, err := c.Submit(within(t), api.JobRequest{Command: []string{"cat"}, StdinStream: true})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789\n", 2000)
	if err := c.Stdin(within(t), job.ID, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := read(t, c, job.ID, client.StreamOptions{Follow: true}); got != text {
		t.Errorf("%d bytes came back of %d", len(got), len(text))
	}
}

func TestLeaseEndsWithTheJobAndSurvivesARestart(t *testing.T) {
	d, c := pair(t)
	d.Set(func(f *clienttest.Faults) { f.LeaseGrace = 2 * time.Second })
	job, err := c.Submit(within(t), api.JobRequest{Command: []string{"ignore"}, Lease: true})
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() { held <- c.Lease(within(t), job.ID) }()
	time.Sleep(50 * time.Millisecond)
	d.Stop()
	time.Sleep(300 * time.Millisecond)
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cancel(within(t), job.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Errorf("lease: %v", err)
	}
	if r, err := c.WaitResult(within(t), job.ID); err != nil || r.Status != "success" {
		t.Errorf("result %+v, %v", r, err)
	}
}

func TestLosingTheLeaseEndsTheJob(t *testing.T) {
	_, c := pair(t)
	job, err := c.Submit(within(t), api.JobRequest{Command: []string{"hang"}, Lease: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(within(t))
	held := make(chan error, 1)
	go func() { held <- c.Lease(ctx, job.ID) }()
	time.Sleep(50 * time.Millisecond)
	cancel()
	if err := <-held; !errors.Is(err, context.Canceled) {
		t.Errorf("lease: %v", err)
	}
	if r, err := c.WaitResult(within(t), job.ID); err != nil || r.Reason != "lease_lost" {
		t.Errorf("result %+v, %v", r, err)
	}
}

func TestEventsResumeWhereTheyWereCut(t *testing.T) {
	d, c := pair(t)
	d.Set(func(f *clienttest.Faults) { f.CutEvents = 2 })
	for range 3 {
		if _, err := c.WaitResult(within(t), submit(t, c, "echo").ID); err != nil {
			t.Fatal(err)
		}
	}
	e, err := c.Events(within(t), client.EventOptions{After: 1, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for want := int64(2); want <= 9; want++ {
		if ev, err := e.Next(); err != nil || ev.Seq != want {
			t.Fatalf("event %+v, %v; want number %d", ev, err, want)
		}
	}
	d.Set(func(f *clienttest.Faults) { f.CutEvents = 0 })
	e, err = c.Events(within(t), client.EventOptions{After: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if ev, err := e.Next(); err != nil || ev.Type != "done" || ev.Payload["status"] != "success" {
		t.Errorf("last event %+v, %v", ev, err)
	}
	if _, err := e.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
}

func TestProfilesVersionAndHealth(t *testing.T) {
	d, c := pair(t)
	d.Set(func(f *clienttest.Faults) { f.EngineDown = true })
	v, err := c.Version(within(t))
	if err != nil || v.Product != api.Product {
		t.Errorf("version %+v, %v", v, err)
	}
	h, err := c.Health(within(t))
	if err != nil || h.Engine.Up {
		t.Errorf("health %+v, %v", h, err)
	}
	p, err := c.Profiles(within(t))
	if err != nil || len(p) != 2 {
		t.Errorf("profiles %+v, %v", p, err)
	}
}
