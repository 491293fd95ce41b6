// Package scheduler decides which queued job starts next and when, within the daemon's capacity and fair over
// callers, and keeps the ledger in step with what the runner does. It takes only what admission returned, after a
// restart too.
package scheduler

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sandboxd/internal/admission"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// Runner takes one claimed job from slot to settled result. Run and Resume block until the job's container is gone or
// left to a later cleanup. kill is cancelled with a *job.CancelCause to end the job, a second, stronger one comes by
// Strengthen; stop is cancelled when the daemon stops, which leaves the job running.
type Runner interface {
	Run(kill, stop context.Context, j job.Job) job.Disposition
	// Resume goes on with a job that an earlier daemon left between starting and finishing.
	Resume(kill, stop context.Context, j job.Job) job.Disposition
	// Strengthen turns a cancel with grace into a kill.
	Strengthen(id job.ID)
	// Stdin opens the standard input of a running job.
	Stdin(ctx context.Context, id job.ID) (io.WriteCloser, error)
	// Freeze stops every process of a running job but its init, until Thaw. An error means that nothing is stopped.
	Freeze(ctx context.Context, id job.ID) error
	// CPU is the processor time a running job has used as of the last look.
	CPU(id job.ID) time.Duration
	Thaw(ctx context.Context, id job.ID) error
}

// Capacity bounds what runs at once.
type Capacity struct {
	MaxRunning       int
	MaxRunningPerUID int
	MilliCPUs        int64
	Memory           int64 // bytes, init's share included
}

// Options are the scheduler's dependencies and bounds.
type Options struct {
	Ledger   store.Ledger
	Trees    store.Trees // nil: jobs have no children and no budget
	Node     store.NodeState
	Checker  *admission.Checker
	Capacity Capacity
	NodeName string
	// EngineUp is asked before a claim: while the engine is away jobs stay queued.
	EngineUp func() bool
	Log      zerolog.Logger
	Now      func() int64 // Unix ms; nil: the wall clock
}

// maxAttempts bounds how often a job whose command was never handed over is queued again.
const maxAttempts = 3

// tick is how often the loop looks by itself; wake-ups only make it faster.
const tick = time.Second

// Scheduler owns the queue. Its zero value is of no use; see New.
type Scheduler struct {
	opt    Options
	runner Runner
	epoch  int64

	stop       context.Context // cancelled: the daemon stops, jobs go on
	cancelStop context.CancelFunc
	wake       chan struct{}
	loop       sync.WaitGroup
	workers    sync.WaitGroup

	mu       sync.Mutex
	draining bool
	queue    *queue
	running  map[job.ID]*execution
	meters   meters
	warned   map[job.ID]int // the highest share of cpu a live job was warned of, in percent
	refused  refusals
	denials  map[job.ID]denials
	done     map[job.ID]chan struct{} // of every job that is queued or running here
}

// execution is one job that holds a place.
type execution struct {
	item   store.QueueItem
	cancel context.CancelCauseFunc // nil while the claim is not committed
	wish   *job.CancelCause        // a cancel that came before there was a context to cancel
	lending
}

// New makes a scheduler; nothing starts.
func New(o Options) *Scheduler {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	if o.EngineUp == nil {
		o.EngineUp = func() bool { return true }
	}
	return &Scheduler{opt: o, wake: make(chan struct{}, 1), queue: newQueue(),
		running: map[job.ID]*execution{}, done: map[job.ID]chan struct{}{}, meters: meters{}, warned: map[job.ID]int{}, refused: refusals{}, denials: map[job.ID]denials{}}
}

// Open loads the queue, resumes the jobs an earlier daemon left and starts the loop.
func (s *Scheduler) Open(ctx context.Context, r Runner, epoch int64) error {
	s.runner, s.epoch = r, epoch
	s.stop, s.cancelStop = context.WithCancel(context.WithoutCancel(ctx))
	unfinished, err := s.opt.Ledger.Unfinished(ctx, s.opt.NodeName)
	if err != nil {
		return err
	}
	items, err := s.opt.Ledger.Queued(ctx)
	if err != nil {
		return err
	}
	for _, it := range items {
		if newLoad().fits(it, s.opt.Capacity) {
			s.mu.Lock()
			s.done[it.ID] = make(chan struct{})
			s.queue.add(it)
			s.mu.Unlock()
		} else if err := s.endUnfit(ctx, it); err != nil {
			return err
		}
	}
	s.mu.Lock()
	for _, j := range unfinished {
		s.startLocked(itemOf(j), j, true)
	}
	s.mu.Unlock()
	s.loop.Add(1)
	go s.run()
	s.Wake()
	return nil
}

// Close stops claiming and lets running jobs go on without the daemon; it waits for the workers until ctx ends.
func (s *Scheduler) Close(ctx context.Context) error {
	if s.cancelStop == nil {
		return nil
	}
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.cancelStop()
	s.loop.Wait()
	idle := make(chan struct{})
	go func() { s.workers.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return errors.New("scheduler: some jobs could not be left in time")
	}
}

// Wake hints that there may be something to start.
func (s *Scheduler) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Running counts the jobs that hold a place.
func (s *Scheduler) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// Holds reports whether the job has a place here, or is about to go on where an earlier daemon left it.
func (s *Scheduler) Holds(id job.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.running[id]
	return ok
}

// Queued counts the jobs that wait for one.
func (s *Scheduler) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.len()
}

// Position is a job's place in the queue's order of age, from 1; 0 when it is not queued.
func (s *Scheduler) Position(id job.ID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.position(id)
}

// Done returns a channel that is closed when the job ends. For a job that is neither queued nor running here it is
// closed already. It is a hint: read the record after it.
func (s *Scheduler) Done(id job.ID) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, ok := s.done[id]; ok {
		return ch
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// Stdin opens the standard input of a running job.
func (s *Scheduler) Stdin(ctx context.Context, id job.ID) (io.WriteCloser, error) {
	return s.runner.Stdin(ctx, id)
}

func (s *Scheduler) run() {
	defer s.loop.Done()
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		for s.giveBack() || s.startOne() || s.lend() {
		}
		select {
		case <-s.stop.Done():
			return
		case <-s.wake:
		case <-t.C:
		}
	}
}
