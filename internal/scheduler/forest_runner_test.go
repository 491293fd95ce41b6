package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
	"sandboxd/internal/scheduler"
	"sandboxd/internal/store"
)

// forest is a world of containers that outlives the daemon: the real scheduler on the real store, and jobs that delegate,
// wait, burn cpu and end as rapid says. It is the scheduler's runner.
type forest struct {
	*scheduler.Scheduler
	db    *store.SQLite
	cap   scheduler.Capacity
	epoch int64
	order []*plant // as admitted
	waits sync.WaitGroup

	mu      sync.Mutex // guards what is below and the plants
	plants  map[job.ID]*plant
	here    map[job.ID]*plant // given to the runner
	broken  []string
	halting bool // what blocks is let go without an answer
	excess  int  // how many an earlier daemon left, where that is more than may run
}

// plant is one job.
type plant struct {
	job               job.Job
	caps              [3]int64 // of a root: depth, jobs ever, jobs live
	cpu, over         int64    // ms used, and how much of it was beyond what was left
	frozen, stiff     bool
	attached, denied  bool
	waiting           int
	exited            chan struct{}
	outcome           job.Outcome
	door              context.Context // nil: no socket
	shut              context.CancelFunc
	started, finished bool
}

func (p *plant) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// exit ends the command. The forest is locked.
func (p *plant) exit(o job.Outcome) {
	if !p.gone() {
		p.outcome = o
		close(p.exited)
	}
}

func (f *forest) breaks(format string, args ...any) {
	f.broken = append(f.broken, fmt.Sprintf(format, args...))
}

func (f *forest) plant(j job.Job) *plant {
	if f.plants[j.ID] == nil {
		f.plants[j.ID] = &plant{job: j, exited: make(chan struct{})}
	}
	return f.plants[j.ID]
}

func (f *forest) enter(j job.Job, fresh bool) *plant {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, n := f.plant(j), 0
	if f.here[j.ID] != nil {
		f.breaks("%s ran twice at once", j.ID)
	}
	f.here[j.ID] = p
	for _, other := range f.here {
		if !other.frozen && !other.gone() {
			n++
		}
	}
	if fresh && (n > f.cap.MaxRunning || p.started) {
		f.breaks("%s starts as one of %d; it started before: %v", j.ID, n, p.started)
	}
	return p
}

func (f *forest) leave(p *plant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.here, p.job.ID)
}

func (f *forest) Run(kill, stop context.Context, j job.Job) job.Disposition {
	p := f.enter(j, true)
	defer f.leave(p)
	var cause *job.CancelCause
	switch {
	case errors.As(context.Cause(kill), &cause):
		return f.commit(stop, p, j, job.Starting, job.Outcome{Status: job.Cancelled, Reason: cause.Reason})
	case stop.Err() != nil:
		return job.Unclaim
	}
	if err := errors.Join(f.Started(context.Background(), j), f.HandingOver(context.Background(), j)); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.breaks("%s could not be started: %v", j.ID, err)
		return job.Settled
	}
	return f.follow(kill, stop, p, j)
}

func (f *forest) Resume(kill, stop context.Context, j job.Job) job.Disposition {
	p := f.enter(j, false)
	defer f.leave(p)
	if j.State == job.Starting {
		if f.MayRetry(j) {
			return job.Unclaim
		}
		return f.commit(stop, p, j, job.Starting, job.Outcome{Status: job.Failed, Reason: job.ReasonInterrupted})
	}
	_ = f.Thaw(kill, j.ID)
	if j.State == job.Waiting {
		if err := f.Awake(context.Background(), j); err != nil {
			f.mu.Lock()
			f.breaks("%s stays waiting: %v", j.ID, err)
			f.mu.Unlock()
		}
	}
	return f.follow(kill, stop, p, j)
}

// follow stays with the command as the real runner does.
func (f *forest) follow(kill, stop context.Context, p *plant, j job.Job) job.Disposition {
	f.mu.Lock()
	p.started, p.attached = true, true
	p.door, p.shut = context.WithCancel(context.Background())
	f.mu.Unlock()
	shut := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		p.shut()
		p.door = nil
	}
	defer func() { f.mu.Lock(); p.attached = false; f.mu.Unlock() }()
	killed := false
	select {
	case <-p.exited:
		shut()
	case <-kill.Done():
		shut() // nothing new comes below it
		var cause *job.CancelCause
		errors.As(context.Cause(kill), &cause)
		if killed = cause.Kill; !killed {
			f.endBelow(stop, j, false)
		}
		f.mu.Lock()
		p.exit(job.Outcome{Status: job.Cancelled, Reason: cause.Reason})
		f.mu.Unlock()
	case <-stop.Done():
		shut()
		return job.Detached
	}
	f.endBelow(stop, j, killed)
	return f.commit(stop, p, j, job.Running, p.outcome)
}

func (f *forest) endBelow(stop context.Context, j job.Job, kill bool) {
	for _, now := range []bool{kill, true} {
		ctx, cancel := context.WithTimeout(stop, 20*time.Second)
		err := f.EndChildren(ctx, j, now)
		cancel()
		if err == nil || stop.Err() != nil {
			return
		}
	}
}

func (f *forest) commit(stop context.Context, p *plant, j job.Job, from job.State, o job.Outcome) job.Disposition {
	ctx := context.Background()
	e := job.Ended{Outcome: o, Times: job.Times{Finished: time.Now().UnixMilli()}}
	if p.started {
		e.Measured = map[string]int64{string(budget.CPUMS): p.cpu}
	}
	for {
		err := f.Finish(ctx, j, from, e)
		now, readErr := f.Standing(ctx, j)
		f.mu.Lock()
		switch {
		case err == nil:
			p.finished = true
		case f.Fenced(err) && readErr == nil && now == job.Done, !f.Fenced(err) && !errors.Is(err, store.ErrLiveChildren):
			f.breaks("the end of %s: %v", j.ID, err)
			p.finished = true
		case f.Fenced(err) && now != from:
			from = now
			f.mu.Unlock()
			continue
		}
		over := p.finished
		f.mu.Unlock()
		if over {
			return job.Settled
		}
		select {
		case <-time.After(2 * time.Second):
		case <-stop.Done():
			return job.Detached
		}
		f.endBelow(stop, j, true)
	}
}

func (f *forest) Strengthen(job.ID) {}

func (f *forest) Stdin(context.Context, job.ID) (io.WriteCloser, error) { return nil, io.ErrClosedPipe }

func (f *forest) CPU(id job.ID) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(f.plants[id].cpu) * time.Millisecond
}

func (f *forest) Freeze(_ context.Context, id job.ID) error {
	time.Sleep(freezing)
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.plants[id]
	switch {
	case !p.attached || p.gone():
		return io.ErrClosedPipe
	case p.stiff:
		return job.Errorf(job.CodeWouldBlock, "", "no freezer")
	case p.frozen:
		f.breaks("%s is frozen twice", id)
	}
	p.frozen = true
	return nil
}

func (f *forest) Thaw(_ context.Context, id job.ID) error {
	time.Sleep(freezing)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plants[id].frozen = false
	return nil
}

// freezing is how long a freeze or thaw takes.
const freezing = 0 * time.Millisecond
