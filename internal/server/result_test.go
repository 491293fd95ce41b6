package server_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

func TestResult(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Running })
	c := r.as(alice)
	path := "/v1/jobs/" + string(j.ID) + "/result"
	for _, query := range []string{"", "?wait=0", "?wait=20ms"} {
		if got := c.get(path + query).want(202).job(); got.State != "running" {
			t.Errorf("%+v", got)
		}
	}
	r.daemon.finish(j.ID)
	var got api.Result
	c.get(path + "?wait=10m").want(200).into(&got)
	if got.Status != "success" || got.Summary != "fine" || *got.ExitCode != 0 {
		t.Errorf("%+v", got)
	}
}

// A wait returns at once when the job ends, whichever of hint and end comes first.
func TestResultRacesTheEnd(t *testing.T) {
	r := newRig(t, func(c *server.Config) { c.PollDone = time.Hour })
	c := r.as(alice)
	for i := range 200 {
		j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Running })
		var race sync.WaitGroup
		race.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Microsecond)
			r.daemon.finish(j.ID)
		})
		c.get("/v1/jobs/" + string(j.ID) + "/result?wait=10s").want(200)
		race.Wait()
	}
}

func TestResultComesWithoutHints(t *testing.T) {
	r := newRig(t)
	r.daemon.noHints = true
	j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Running })
	time.AfterFunc(50*time.Millisecond, func() { r.daemon.finish(j.ID) })
	r.as(alice).get("/v1/jobs/" + string(j.ID) + "/result?wait=10s").want(200)
}

func TestAHintBeforeTheRecordIsWaitedOut(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Running })
	close(r.daemon.done[j.ID])
	r.daemon.noHints = true
	time.AfterFunc(100*time.Millisecond, func() { r.daemon.finish(j.ID) })
	r.as(alice).get("/v1/jobs/" + string(j.ID) + "/result?wait=10s").want(200)
}

// When the daemon stops, a wait ends with what is known, so that the client asks the next daemon.
func TestAWaitEndsAtClose(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Running })
	c := r.as(alice)
	time.AfterFunc(50*time.Millisecond, r.close)
	if got := c.get("/v1/jobs/" + string(j.ID) + "/result?wait=10m").want(202).job(); got.ID != string(j.ID) {
		t.Errorf("%+v", got)
	}
}

func TestDoneWithoutOutcomeIsAFaultOfOurs(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Done })
	r.as(alice).get("/v1/jobs/"+string(j.ID)+"/result").problem(500, job.CodeInternal)
}

// A client that goes away frees its handler.
func TestAnAbandonedWaitEnds(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Running })
	c := r.as(alice)
	ctx, cancel := context.WithCancel(context.Background())
	resp := c.begin(ctx, "GET", "/v1/jobs/"+string(j.ID)+"/stream?follow=true", nil)
	eventually(t, "one connection", func() bool { return r.server.OpenConns() == 1 })
	cancel()
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	eventually(t, "no connection", func() bool { return r.server.OpenConns() == 0 })
}
