package server_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

const grace = 10 * time.Second

// leases runs a test of the watch in a bubble with its own clock. settled is what ending a job reports.
func leases(t *testing.T, settled bool, test func(t *testing.T, l *server.Leases, lost *atomic.Int32)) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int32
		l := server.NewLeases(grace, func(context.Context, job.ID) bool {
			lost.Add(1)
			return settled
		})
		defer l.Close()
		test(t, l, &lost)
	})
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func expect(t *testing.T, lost *atomic.Int32, want int32) {
	t.Helper()
	if got := lost.Load(); got != want {
		t.Errorf("ended %d times, want %d", got, want)
	}
}

func TestALeaseNobodyHoldsIsLostAfterTheGrace(t *testing.T) {
	leases(t, true, func(t *testing.T, l *server.Leases, lost *atomic.Int32) {
		l.Watch("a")
		after(grace - 1)
		expect(t, lost, 0)
		after(1)
		expect(t, lost, 1)
		after(100 * grace)
		expect(t, lost, 1)
		if l.Watched() != 0 {
			t.Error("still watched")
		}
	})
}

func TestALeaseThatIsHeldIsNotLost(t *testing.T) {
	leases(t, true, func(t *testing.T, l *server.Leases, lost *atomic.Int32) {
		l.Watch("a")
		after(grace / 2)
		release := l.Hold("a")
		l.Watch("a") // a repeated submit
		after(100 * grace)
		expect(t, lost, 0)
		release()
		release()
		after(grace - 1)
		expect(t, lost, 0)
		after(1)
		expect(t, lost, 1)
	})
}

func TestTheGraceBeginsAnewWithEachHolder(t *testing.T) {
	leases(t, true, func(t *testing.T, l *server.Leases, lost *atomic.Int32) {
		l.Watch("a")
		for range 5 {
			after(grace - 1)
			l.Hold("a")()
		}
		first, second := l.Hold("a"), l.Hold("a")
		first()
		after(2 * grace)
		expect(t, lost, 0)
		second()
		after(grace)
		expect(t, lost, 1)
	})
}

func TestAnEndThatDidNotWorkIsTriedAgain(t *testing.T) {
	leases(t, false, func(t *testing.T, l *server.Leases, lost *atomic.Int32) {
		l.Watch("a")
		after(3 * grace)
		expect(t, lost, 3)
		release := l.Hold("a")
		after(3 * grace)
		expect(t, lost, 3)
		release()
		l.Forget("a")
		after(3 * grace)
		expect(t, lost, 3)
	})
}

func TestAForgottenLeaseIsNotLost(t *testing.T) {
	leases(t, true, func(t *testing.T, l *server.Leases, lost *atomic.Int32) {
		release := l.Hold("a")
		l.Forget("a")
		release()
		l.Forget("never")
		after(2 * grace)
		expect(t, lost, 0)
	})
}

func TestNoLeaseIsLostByClosing(t *testing.T) {
	leases(t, true, func(t *testing.T, l *server.Leases, lost *atomic.Int32) {
		l.Watch("a")
		release := l.Hold("b")
		l.Close()
		release()
		l.Watch("c")
		after(2 * grace)
		expect(t, lost, 0)
	})
}

// quick makes leases of tests over a socket short.
func quick(c *server.Config) { c.LeaseGrace = 100 * time.Millisecond }

func (r *rig) leased(change ...func(*job.Job)) job.Job {
	return r.daemon.add(alice, append(change, func(j *job.Job) { j.State, j.Spec.Lease = job.Running, true })...)
}

func TestAJobWhoseClientNeverComesIsCancelled(t *testing.T) {
	r := newRig(t, quick)
	j := r.as(alice).do("POST", api.PathJobs, `{"command":["sleep","9"],"lease":true}`).want(201).job()
	r.as(alice).do("POST", api.PathJobs, `{"command":["sleep","9"]}`).want(201)
	eventually(t, "cancelled", func() bool { return len(r.daemon.allCancels()) == 1 })
	if got := r.daemon.allCancels()[0]; got != (cancelled{"daemon", job.ID(j.ID), false, job.ReasonLeaseLost}) {
		t.Errorf("%+v", got)
	}
}

func TestALeaseConnectionBeatsUntilTheEnd(t *testing.T) {
	r := newRig(t, quick)
	j := r.leased()
	resp := r.as(alice).begin(context.Background(), "GET", "/v1/jobs/"+string(j.ID)+"/lease", nil)
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 30)); err != nil {
		t.Fatal(err)
	}
	r.daemon.finish(j.ID)
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Error(err)
	}
	if n := len(r.daemon.allCancels()); n != 0 {
		t.Errorf("%d cancels", n)
	}
	eventually(t, "forgotten", func() bool { return r.server.Watched() == 0 })
}

func TestALostConnectionCancelsAfterTheGrace(t *testing.T) {
	r := newRig(t, quick)
	j := r.leased()
	ctx, cancel := context.WithCancel(context.Background())
	resp := r.as(alice).begin(ctx, "GET", "/v1/jobs/"+string(j.ID)+"/lease", nil)
	time.Sleep(200 * time.Millisecond)
	if n := len(r.daemon.allCancels()); n != 0 {
		t.Errorf("%d cancels while held", n)
	}
	cancel()
	_ = resp.Body.Close()
	eventually(t, "cancelled", func() bool { return len(r.daemon.allCancels()) == 1 })
}

func TestAJobWithoutLeaseHasNone(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice)
	r.as(alice).get("/v1/jobs/"+string(j.ID)+"/lease").problem(409, job.CodeConflict)
}

// After a restart every unfinished leased job of this node is watched, and no other.
func TestLeasesAreWatchedAfterARestart(t *testing.T) {
	r := newRig(t, quick)
	running := r.leased()
	queued := r.leased(func(j *job.Job) {})
	r.daemon.mu.Lock()
	q := r.daemon.jobs[queued.ID]
	q.State = job.Queued
	r.daemon.jobs[queued.ID] = q
	r.daemon.mu.Unlock()
	r.leased(func(j *job.Job) { j.Node = "another" })
	r.daemon.add(alice)
	r.as(alice).get("/v1/version").want(200)
	eventually(t, "both cancelled", func() bool { return len(r.daemon.allCancels()) == 2 })
	for _, c := range r.daemon.allCancels() {
		if c.ID != running.ID && c.ID != queued.ID || c.Reason != job.ReasonLeaseLost {
			t.Errorf("%+v", c)
		}
	}
}

func TestClosingTheServerLosesNoLease(t *testing.T) {
	r := newRig(t, quick)
	j := r.leased()
	resp := r.as(alice).begin(context.Background(), "GET", "/v1/jobs/"+string(j.ID)+"/lease", nil)
	defer resp.Body.Close()
	r.close()
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("the connection did not end cleanly: %v", err)
	}
	time.Sleep(200 * time.Millisecond)
	if n := len(r.daemon.allCancels()); n != 0 {
		t.Errorf("%d cancels", n)
	}
}
