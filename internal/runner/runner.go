// Package runner is the recipe for one job: prepare a slot, pass the gate, hand the command over, follow it, and
// settle its result. Each step is followed by its undo; an outcome is a value, never a Go error.
package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
	"sandboxd/internal/sandbox"
)

// Ledger is what a runner reports to; each call commits before it returns.
type Ledger interface {
	Started(ctx context.Context, j job.Job) error
	HandingOver(ctx context.Context, j job.Job) error
	Finishing(ctx context.Context, j job.Job) error
	Finish(ctx context.Context, j job.Job, from job.State, e job.Ended) error
	MayRetry(j job.Job) bool
	// Awake commits waiting → running, for a job that an earlier daemon left waiting.
	Awake(ctx context.Context, j job.Job) error
	// Standing is the state the ledger holds of this attempt of a job; done where it is another's.
	Standing(ctx context.Context, j job.Job) (job.State, error)
	// Fenced reports whether an error says that another transition of the job was first.
	Fenced(err error) bool
}

// Paths opens host paths with the caller's own rights.
type Paths interface {
	// Open returns a descriptor (O_PATH) of a directory or regular file, or a job.Error with code workspace.
	Open(ctx context.Context, c job.Caller, path string) (f *os.File, dir bool, err error)
}

// Slots remembers which slot a job of an earlier daemon has.
type Slots interface {
	Slot(ctx context.Context, id job.ID) (sandbox.SlotRecord, bool, error)
}

// Options are the runner's dependencies.
type Options struct {
	Sandbox *sandbox.Sandbox
	Images  *sandbox.Images
	Pool    *sandbox.Pool
	Logs    *results.Logs
	Ledger  Ledger
	Paths   Paths
	Slots   Slots
	Family  Family // nil: jobs have no children and no budget
	Doors   Doors  // nil: jobs have no socket of their own
	// EngineUp reports whether the engine answers and the sandbox is open; nil: always.
	EngineUp func() bool
	// CancelGrace bounds the finishing window: min(CancelGrace, timeout/8).
	CancelGrace time.Duration
	Log         zerolog.Logger
}

// Runner runs claimed jobs. Safe for concurrent use.
type Runner struct {
	opt Options

	mu     sync.Mutex
	runs   map[job.ID]*run
	strong map[job.ID]bool // kills that came before the run they are for
}

// maxStrong bounds the kills that are kept for jobs about to begin.
const maxStrong = 4096

// New makes a runner; it has nothing to open or close.
func New(o Options) *Runner {
	if o.EngineUp == nil {
		o.EngineUp = func() bool { return true }
	}
	return &Runner{opt: o, runs: map[job.ID]*run{}, strong: map[job.ID]bool{}}
}

// Run takes a claimed job to its end. See scheduler.Runner for the two contexts.
func (r *Runner) Run(kill, stop context.Context, j job.Job) job.Disposition {
	x := r.begin(kill, stop, j)
	defer r.leave(x)
	return x.fresh()
}

// Resume goes on with a job that an earlier daemon left between starting and finishing.
func (r *Runner) Resume(kill, stop context.Context, j job.Job) job.Disposition {
	x := r.begin(kill, stop, j)
	defer r.leave(x)
	return x.resume()
}

// Strengthen turns a cancel with grace into a kill.
func (r *Runner) Strengthen(id job.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.runs[id]; x != nil {
		x.strengthen()
		return
	}
	if len(r.strong) < maxStrong { // of jobs that are about to begin; one that ended meanwhile may stay
		r.strong[id] = true
	}
}

// Freeze stops every process of a running job but its init.
func (r *Runner) Freeze(ctx context.Context, id job.ID) error {
	slot := r.slotOf(id)
	if slot == nil {
		return job.Errorf(job.CodeConflict, "", "job %s does not run", id)
	}
	err := slot.Freeze(ctx)
	if errors.Is(err, sandbox.ErrNoJobCgroup) {
		return job.Wrap(job.CodeWouldBlock, err, "job %s cannot be frozen", id)
	}
	return err
}

// CPU is the processor time a running job has used as of the last look at it.
func (r *Runner) CPU(id job.ID) time.Duration {
	r.mu.Lock()
	x := r.runs[id]
	r.mu.Unlock()
	if x == nil {
		return 0
	}
	return time.Duration(x.cpu.Load())
}

// Thaw lets a frozen job go on.
func (r *Runner) Thaw(ctx context.Context, id job.ID) error {
	slot := r.slotOf(id)
	if slot == nil {
		return nil
	}
	return slot.Thaw(ctx)
}

func (r *Runner) slotOf(id job.ID) *sandbox.Slot {
	r.mu.Lock()
	x := r.runs[id]
	r.mu.Unlock()
	if x == nil {
		return nil
	}
	return x.live.Load()
}

// Stdin opens the standard input of a running job, once; it waits until the job runs.
func (r *Runner) Stdin(ctx context.Context, id job.ID) (io.WriteCloser, error) {
	r.mu.Lock()
	x := r.runs[id]
	r.mu.Unlock()
	if x == nil {
		return nil, job.Errorf(job.CodeConflict, "stdin", "the job does not run")
	}
	return x.stdin.open(ctx)
}

func (r *Runner) begin(kill, stop context.Context, j job.Job) *run {
	x := newRun(r, kill, stop, j)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[j.ID] = x
	if r.strong[j.ID] {
		x.strengthen()
	}
	return x
}

func (r *Runner) leave(x *run) {
	x.stdin.end()
	r.mu.Lock()
	delete(r.runs, x.job.ID)
	delete(r.strong, x.job.ID)
	r.mu.Unlock()
}
