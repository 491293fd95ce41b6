package client_test

import (
	"strings"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/client"
	"sandboxd/client/clienttest"
)

// A job that asks too often is put off; its client asks again, and nobody notices but by the time it took.
func TestWhatWasPutOffIsAskedAgain(t *testing.T) {
	d, c := pair(t)
	putOff := func() { d.Set(func(f *clienttest.Faults) { f.PutOff = 3 }) }
	putOff()
	job, err := c.Submit(within(t), api.JobRequest{Command: []string{"cat"}, StdinStream: true, Lease: true})
	if err != nil || d.Jobs() != 1 {
		t.Fatalf("%d jobs, %v", d.Jobs(), err)
	}
	held := make(chan error, 1)
	go func() { held <- c.LeaseAndWait(within(t), job.ID) }()
	for d.Blocked() == 0 {
		time.Sleep(time.Millisecond)
	}
	putOff()
	stream, err := c.Stream(within(t), job.ID, client.StreamOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	stream.Close()
	putOff()
	events, err := c.Events(within(t), client.EventOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events.Close()
	putOff()
	text := strings.Repeat("0123456789\n", 20_000)
	if err := c.Stdin(within(t), job.ID, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	putOff()
	if got, _, _ := read(t, c, job.ID, client.StreamOptions{Follow: true}); got != text {
		t.Errorf("%d bytes came back of %d", len(got), len(text))
	}
	putOff()
	if r, err := c.WaitResult(within(t), job.ID); err != nil || r.Status != "success" {
		t.Errorf("%+v, %v", r, err)
	}
	putOff()
	if _, err := c.Health(within(t)); err != nil {
		t.Error(err)
	}
	if err := <-held; err != nil {
		t.Error(err)
	}
	if d.Blocked() != 0 {
		t.Error("the lease is still held")
	}
}

func TestPuttingOffHasAnEnd(t *testing.T) {
	socket := socketPath(t)
	d, err := clienttest.Start(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.Set(func(f *clienttest.Faults) { f.PutOff = 1 << 30 })
	c := client.New(client.Options{Socket: socket, RetryFor: 200 * time.Millisecond})
	defer c.Close()
	if _, err := c.Submit(within(t), api.JobRequest{Command: []string{"echo"}}); !client.IsCode(err, client.CodeRateLimit) {
		t.Errorf("%v", err)
	}
}

// A process that is stopped while it waits finds its calls overdue when it goes on. However often that happens, it
// waits on, as long as the daemon answers then.
func TestWaitResultSurvivesBeingStopped(t *testing.T) {
	socket := socketPath(t)
	d, err := clienttest.Start(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c := client.New(client.Options{Socket: socket, CallTimeout: 50 * time.Millisecond, RetryFor: 100 * time.Millisecond})
	c.SetWaitStep(50 * time.Millisecond)
	defer c.Close()
	job := submit(t, c, "hang")
	d.Set(func(f *clienttest.Faults) { f.MuteWaits = 8 })
	time.AfterFunc(1500*time.Millisecond, func() { _, _ = c.Cancel(within(t), job.ID, false) })
	if r, err := c.WaitResult(within(t), job.ID); err != nil || r.Status != "cancelled" {
		t.Errorf("%+v, %v", r, err)
	}
}
