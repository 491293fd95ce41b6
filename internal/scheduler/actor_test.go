package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/scheduler"
)

// actor is a runner whose jobs do what the test says, and that watches the bounds which must hold whatever happens.
type actor struct {
	s *scheduler.Scheduler

	// notStarted answers for a job before it starts: true gives it back.
	notStarted func(job.Job) bool

	freezing  sync.Mutex
	frozen    map[job.ID]bool // guarded by freezing
	noFreezer error           // what freezing fails with

	mu        sync.Mutex
	live      map[job.ID]*act
	order     []job.ID // as started
	resumed   map[job.ID]bool
	strong    map[job.ID]int
	broken    []string // bounds that did not hold
	cap       scheduler.Capacity
	cpu, mem  int64
	uid       map[uint32]int
	peak      int
	deafUntil chan struct{} // not nil: a stop of the daemon is not heard before this is closed
}

// act is one job on its way.
type act struct {
	job   job.Job
	state job.State        // what the ledger holds
	end   chan job.Outcome // what it ends with
	kill  context.Context
}

func newActor(c scheduler.Capacity) *actor {
	return &actor{cap: c, live: map[job.ID]*act{}, resumed: map[job.ID]bool{}, strong: map[job.ID]int{}, uid: map[uint32]int{}}
}

func (a *actor) Run(kill, stop context.Context, j job.Job) job.Disposition {
	x := a.enter(kill, j, false)
	defer a.leave(x)
	ctx := context.Background()
	var cause *job.CancelCause
	switch {
	case errors.As(context.Cause(kill), &cause):
		return a.finish(x, job.Starting, job.Outcome{Status: job.Cancelled, Reason: cause.Reason})
	case stop.Err() != nil:
		return job.Unclaim
	case a.notStarted != nil && a.notStarted(j):
		if a.s.MayRetry(j) {
			return job.Unclaim
		}
		return a.finish(x, job.Starting, job.Outcome{Status: job.Failed, Reason: job.ReasonEngineError})
	}
	if a.s.Started(ctx, j) != nil {
		return a.finish(x, job.Starting, job.Outcome{Status: job.Failed, Reason: job.ReasonStorage})
	}
	if a.s.HandingOver(ctx, j) != nil {
		return a.finish(x, job.Running, job.Outcome{Status: job.Failed, Reason: job.ReasonStorage})
	}
	x.state = job.Running
	return a.follow(x, stop)
}

func (a *actor) Resume(kill, stop context.Context, j job.Job) job.Disposition {
	x := a.enter(kill, j, true)
	defer a.leave(x)
	if j.State == job.Starting {
		if a.s.MayRetry(j) {
			return job.Unclaim
		}
		return a.finish(x, job.Starting, job.Outcome{Status: job.Failed, Reason: job.ReasonInterrupted})
	}
	return a.follow(x, stop)
}

func (a *actor) follow(x *act, stop context.Context) job.Disposition {
	if a.deafUntil != nil {
		<-a.deafUntil
	}
	select {
	case o := <-x.end:
		return a.finish(x, x.state, o)
	case <-x.kill.Done():
		var cause *job.CancelCause
		errors.As(context.Cause(x.kill), &cause)
		if x.state == job.Running {
			if err := a.s.Finishing(context.Background(), x.job); err != nil {
				return a.finish(x, job.Running, job.Outcome{Status: job.Failed, Reason: job.ReasonStorage})
			}
		}
		return a.finish(x, job.Finishing, job.Outcome{Status: job.Cancelled, Reason: cause.Reason})
	case <-stop.Done():
		return job.Detached
	}
}

func (a *actor) finish(x *act, from job.State, o job.Outcome) job.Disposition {
	_ = a.s.Finish(context.Background(), x.job, from, job.Ended{Outcome: o})
	return job.Settled
}

// enter counts a job in and checks the bounds, which what ran before may exceed; what it returns is the test's handle.
func (a *actor) enter(kill context.Context, j job.Job, resumed bool) *act {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := &act{job: j, state: j.State, end: make(chan job.Outcome, 1), kill: kill}
	if a.live[j.ID] != nil {
		a.broken = append(a.broken, "ran twice at once: "+string(j.ID))
	}
	a.live[j.ID], a.resumed[j.ID] = x, a.resumed[j.ID] || resumed
	a.order = append(a.order, j.ID)
	cpu, mem := needs(j)
	a.cpu += cpu
	a.mem += mem
	a.uid[j.OwnerUID]++
	a.peak = max(a.peak, len(a.live))
	if resumed {
		return x
	}
	if len(a.live) > a.cap.MaxRunning || a.uid[j.OwnerUID] > a.cap.MaxRunningPerUID || a.cpu > a.cap.MilliCPUs || a.mem > a.cap.Memory {
		a.broken = append(a.broken, "beyond capacity with "+string(j.ID))
	}
	return x
}

func (a *actor) leave(x *act) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.live, x.job.ID)
	cpu, mem := needs(x.job)
	a.cpu -= cpu
	a.mem -= mem
	a.uid[x.job.OwnerUID]--
}

func needs(j job.Job) (cpu, mem int64) {
	var e envelope.Envelope
	if err := json.Unmarshal(j.Envelope, &e); err != nil {
		panic(err)
	}
	return e.Posture.MilliCPUs, e.Posture.Memory + envelope.InitMemory
}

func (a *actor) Strengthen(id job.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.strong[id]++
}

// Freeze and Thaw note what they are asked.
func (a *actor) Freeze(_ context.Context, id job.ID) error { return a.setFrozen(id, true) }

func (a *actor) Thaw(_ context.Context, id job.ID) error { return a.setFrozen(id, false) }

func (a *actor) CPU(job.ID) time.Duration { return 0 }

func (a *actor) setFrozen(id job.ID, frozen bool) error {
	a.freezing.Lock()
	defer a.freezing.Unlock()
	if a.frozen == nil {
		a.frozen = map[job.ID]bool{}
	}
	a.frozen[id] = frozen
	return a.noFreezer
}

func (a *actor) Stdin(context.Context, job.ID) (io.WriteCloser, error) { return nil, io.ErrClosedPipe }

// end lets a running job end.
func (a *actor) end(id job.ID) bool {
	a.mu.Lock()
	x := a.live[id]
	a.mu.Unlock()
	if x == nil {
		return false
	}
	select {
	case x.end <- job.Outcome{Status: job.Success}:
	default:
	}
	return true
}

// started lists the jobs in the order they were given to the runner.
func (a *actor) started() []job.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]job.ID{}, a.order...)
}

func (a *actor) runs(id job.ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live[id] != nil
}

func (a *actor) running() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.live)
}
