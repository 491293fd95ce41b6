package client_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/client"
	"sandboxd/client/clienttest"
)

func TestSubmitWhoseAnswerIsCutMakesOneJob(t *testing.T) {
	d, c := pair(t)
	d.Set(func(f *clienttest.Faults) { f.CutSubmits = 3 })
	job := submit(t, c, "echo", "once")
	if d.Submits() != 4 || d.Jobs() != 1 {
		t.Errorf("%d submits made %d jobs, want 4 and 1", d.Submits(), d.Jobs())
	}
	if _, err := c.WaitResult(within(t), job.ID); err != nil {
		t.Error(err)
	}
}

func TestSubmitSurvivesARestart(t *testing.T) {
	d, c := pair(t)
	if _, err := c.Version(within(t)); err != nil {
		t.Fatal(err)
	}
	d.Set(func(f *clienttest.Faults) { f.CutSubmits = 1 })
	restarted := make(chan error, 1)
	go func() {
		for d.Submits() == 0 {
			time.Sleep(time.Millisecond)
		}
		d.Stop()
		time.Sleep(200 * time.Millisecond)
		restarted <- d.Start()
	}()
	submit(t, c, "echo")
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if d.Jobs() != 1 {
		t.Errorf("%d jobs, want 1", d.Jobs())
	}
}

func TestTheSameKeyIsTheSameJob(t *testing.T) {
	_, c := pair(t)
	req := api.JobRequest{Command: []string{"echo"}, IdempotencyKey: "k"}
	a, err := c.Submit(within(t), req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Submit(within(t), req)
	if err != nil {
		t.Fatal(err)
	}
	other := submit(t, c, "echo")
	if a.ID != b.ID || a.ID == other.ID {
		t.Errorf("ids %s, %s and %s", a.ID, b.ID, other.ID)
	}
}

func TestRefusalIsTypedAndNotRepeated(t *testing.T) {
	d, c := pair(t)
	_, err := c.Submit(within(t), api.JobRequest{Command: []string{"denied"}})
	var e *client.Error
	if !errors.As(err, &e) || e.Code != "not_subset" || e.ExitCode != 120 || e.Hint == "" {
		t.Fatalf("error is %#v", err)
	}
	if want := "limits.memory: more than the profile allows; limits.memory: asked 8GiB, allowed 2GiB (profile default)"; err.Error() != want {
		t.Errorf("error reads %q, want %q", err, want)
	}
	if d.Submits() != 1 {
		t.Errorf("sent %d times", d.Submits())
	}
	d.Set(func(f *clienttest.Faults) { f.Draining = true })
	if _, err := c.Submit(within(t), api.JobRequest{Command: []string{"echo"}}); !client.IsCode(err, client.CodeDraining) {
		t.Errorf("a draining daemon: %v", err)
	}
}

func TestReferencesThatAreNoneAreRefusedUnsent(t *testing.T) {
	_, c := pair(t)
	for _, ref := range []string{"", ".", "..", "a/b", "../health", "a b", "ä", "-x", "a?wait=1", "x\n", strings.Repeat("a", 64)} {
		if _, err := c.Job(within(t), ref); !client.IsCode(err, client.CodeNotFound) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	if _, err := c.Job(within(t), "nope"); !client.IsCode(err, client.CodeNotFound) {
		t.Errorf("an unknown job: %v", err)
	}
}

func TestJobsAreFilteredAndPaged(t *testing.T) {
	_, c := pair(t)
	for i := range 5 {
		req := api.JobRequest{Command: []string{"echo"}, Labels: map[string]string{"odd": string('0' + rune(i%2))}}
		if _, err := c.Submit(within(t), req); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for f := (client.JobFilter{Labels: map[string]string{"odd": "0"}, Limit: 10}); ; {
		page, err := c.Jobs(within(t), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
		}
		if f.Before = page.Next; f.Before == "" {
			break
		}
	}
	if len(ids) != 3 || ids[0] <= ids[1] || ids[1] <= ids[2] {
		t.Errorf("listed %v, want 3, newest first", ids)
	}
}

func TestResultSaysNotYetAndThenTheOutcome(t *testing.T) {
	_, c := pair(t)
	job := submit(t, c, "hang")
	result, running, err := c.Result(within(t), job.ID, 0)
	if err != nil || result != nil || running == nil || running.ID != job.ID {
		t.Fatalf("before the end: %v, %v, %v", result, running, err)
	}
	if _, err := c.Cancel(within(t), job.ID, false); err != nil {
		t.Fatal(err)
	}
	result, err = c.WaitResult(within(t), job.ID)
	if err != nil || result.Status != "cancelled" || result.RunExit != 123 {
		t.Errorf("after a cancel: %+v, %v", result, err)
	}
}

func TestWaitResultSurvivesARestartAndAnImpatientDaemon(t *testing.T) {
	d, c := pair(t)
	job := submit(t, c, "ignore")
	d.Set(func(f *clienttest.Faults) { f.QuickNotYet = true })
	restarted := make(chan error, 1)
	go func() {
		time.Sleep(100 * time.Millisecond)
		d.Stop()
		time.Sleep(300 * time.Millisecond)
		restarted <- d.Start()
		_, _ = c.Cancel(within(t), job.ID, false)
	}()
	result, err := c.WaitResult(within(t), job.ID)
	if err != nil || result.Status != "success" {
		t.Errorf("result %+v, %v", result, err)
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
}

func TestWaitResultGivesUpADaemonThatStaysAway(t *testing.T) {
	socket := socketPath(t)
	d, err := clienttest.Start(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c := client.New(client.Options{Socket: socket, RetryFor: 300 * time.Millisecond})
	defer c.Close()
	job := submit(t, c, "hang")
	time.AfterFunc(50*time.Millisecond, d.Stop)
	if _, err := c.WaitResult(within(t), job.ID); !errors.Is(err, client.ErrNoDaemon) {
		t.Errorf("error is %v, want no daemon", err)
	}
}

func TestGarbageIsNamedAsSuch(t *testing.T) {
	d, c := pair(t)
	job := submit(t, c, "echo")
	d.Set(func(f *clienttest.Faults) { f.Garbage = true })
	var odd *client.ProtocolError
	if _, err := c.Job(within(t), job.ID); !errors.As(err, &odd) || !strings.Contains(err.Error(), "GET /v1/jobs/") {
		t.Errorf("error is %v", err)
	}
	if _, err := c.Stream(within(t), job.ID, client.StreamOptions{}); !errors.As(err, &odd) {
		t.Errorf("stream: error is %v", err)
	}
	if _, err := c.WaitResult(within(t), job.ID); !errors.As(err, &odd) {
		t.Errorf("wait: error is %v", err)
	}
}
