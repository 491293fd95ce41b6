package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/results"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// Bounds of what we do for a job after it ended or when the daemon stops.
const (
	commitTimeout = 30 * time.Second
	removeTimeout = 60 * time.Second
)

// run is one job on its way. Constant after newRun but for what stands below the line.
type run struct {
	r       *Runner
	job     job.Job
	posture envelope.Posture
	kill    context.Context // cancelled with a *job.CancelCause: end the job
	stop    context.Context // cancelled: leave the job, the daemon stops
	killNow chan struct{}
	log     zerolog.Logger
	live    atomic.Pointer[sandbox.Slot] // while the command runs: for those who freeze
	cpu     atomic.Int64                 // ns of processor time, as of the last reading

	// Used by the goroutine of Run alone.
	slot   *sandbox.Slot
	req    sandbox.Request // of the slot
	out    *results.Writer
	door   io.Closer // the job's own socket, if it has one
	meter  Meter     // of output; nil where nothing bounds it
	stdin  *stdin
	times  job.Times
	from   job.State // state the ledger holds
	caller job.Caller
}

func newRun(r *Runner, kill, stop context.Context, j job.Job) *run {
	return &run{
		r: r, job: j, kill: kill, stop: stop, killNow: make(chan struct{}, 1), stdin: newStdin(), from: j.State,
		log:    r.opt.Log.With().Str("job", string(j.ID)).Str("root", string(j.Root)).Logger(),
		caller: job.HostCaller(j.OwnerUID, j.OwnerGID, j.Groups, 0, false),
	}
}

func (x *run) strengthen() {
	select {
	case x.killNow <- struct{}{}:
	default:
	}
}

func nowMS() int64 { return time.Now().UnixMilli() }

// fresh is the recipe.
func (x *run) fresh() job.Disposition {
	var e envelope.Envelope
	if err := json.Unmarshal(x.job.Envelope, &e); err != nil {
		return x.fail(job.ReasonStartFailed, fmt.Errorf("the stored envelope cannot be read: %w", err))
	}
	x.posture = e.Posture

	setup, cancel := x.setupContext()
	defer cancel(nil)
	err := x.prepare(setup)
	defer x.removeSlot()
	if err != nil {
		return x.notStarted(setup, err)
	}
	x.times.Prepared = nowMS()
	if x.job.Attempt > 1 {
		// Of an attempt that ended before its command was handed over.
		if err := x.r.opt.Logs.Remove(x.job.ID); err != nil {
			return x.fail(job.ReasonStorage, err)
		}
	}
	if x.out, err = x.r.opt.Logs.Create(x.job.ID, results.Options{Keep: x.posture.OutputKeep}); err != nil {
		return x.fail(job.ReasonStorage, err)
	}
	if err := x.openUp(); err != nil {
		return x.fail(job.ReasonStartFailed, err)
	}
	return x.handOver(setup)
}

// handOver commits that the job runs, journals, and sends the command, in this order: a crash after the journal's line
// never runs the command again.
func (x *run) handOver(setup context.Context) job.Disposition {
	if setup.Err() != nil {
		return x.notStarted(setup, setup.Err())
	}
	commit, cancel := context.WithTimeout(context.WithoutCancel(setup), commitTimeout)
	defer cancel()
	if err := x.r.opt.Ledger.Started(commit, x.job); err != nil {
		x.log.Error().Err(err).Msg("the start could not be committed")
		return x.fail(job.ReasonStorage, err)
	}
	x.from = job.Running
	if err := x.r.opt.Ledger.HandingOver(commit, x.job); err != nil {
		return x.fail(job.ReasonStorage, err)
	}
	if err := send(x.slot.Conn(), x.startMessage()); err != nil {
		return x.fail(job.ReasonStartFailed, fmt.Errorf("handing the command to init: %w", err))
	}
	x.times.Started = nowMS()
	return x.follow(wire.Held{Started: true})
}

// setupContext ends when the job is to be killed or the daemon stops.
func (x *run) setupContext() (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(x.kill)
	unhook := context.AfterFunc(x.stop, func() { cancel(errStopping) })
	return ctx, func(err error) { unhook(); cancel(err) }
}

var errStopping = errors.New("the daemon stops")

// prepare makes the slot ready for this job: image, workspace and mounts by descriptor, container, gate, limits. A warm
// slot that turns out to be no good costs a cold one.
func (x *run) prepare(ctx context.Context) error {
	img, err := x.r.opt.Images.Get(ctx, x.job.Spec.Image, x.job.Spec.ImageID)
	if err != nil {
		return err
	}
	x.posture.ImageID = img.ID
	files, err := x.files()
	if err != nil {
		return err
	}
	req := sandbox.Request{Slot: sandbox.NewSlotName(), Job: x.job.ID, Attempt: x.job.Attempt, Posture: x.posture, Image: img, Files: files}
	if x.bindsNothing() {
		if x.slot = x.r.opt.Pool.Take(ctx, req); x.slot != nil {
			x.req = req
			err := x.slot.HandOver(ctx, x.posture)
			if err == nil {
				return nil
			}
			x.log.Warn().Err(err).Msg("a warm slot was no good; the job gets a cold one")
			x.removeSlot()
			x.slot = nil
		}
	}
	x.req = req
	binds, unstage, err := x.stage(ctx, req.Slot)
	if err != nil {
		return err
	}
	// The container holds mounts of its own once it is created.
	defer unstage()
	x.req.Binds = binds
	if x.slot, err = x.r.opt.Sandbox.Fill(ctx, x.req); err != nil {
		return err
	}
	return x.slot.HandOver(ctx, x.posture)
}

func (x *run) bindsNothing() bool { return x.job.Spec.Workspace == nil && len(x.job.Spec.Mounts) == 0 }

// stage opens what the job may see of the host, with the owner's rights, and mounts the descriptors where only root
// may look, for the engine to bind from.
func (x *run) stage(ctx context.Context, slot string) ([]sandbox.Bind, func(), error) {
	type source struct{ path, target string }
	var sources []source
	if w := x.job.Spec.Workspace; w != nil {
		sources = append(sources, source{w.Path, sandbox.PathWorkspace})
	}
	for _, m := range x.job.Spec.Mounts {
		sources = append(sources, source{m.Source, sandbox.PathMnt + "/" + m.Name})
	}
	stage, err := x.r.opt.Sandbox.NewStage(slot)
	if err != nil {
		return nil, nil, err
	}
	var binds []sandbox.Bind
	for _, s := range sources {
		f, dir, err := x.r.opt.Paths.Open(ctx, x.caller, s.path)
		if err != nil {
			stage.Close()
			return nil, nil, err
		}
		if f.Name() != s.path {
			_ = f.Close()
			stage.Close()
			return nil, nil, job.Errorf(job.CodeWorkspace, "", "%q leads to %q now; a link was put in its way after the job was admitted", s.path, f.Name())
		}
		bind, err := stage.Add(f, dir, s.target)
		_ = f.Close()
		if err != nil {
			stage.Close()
			return nil, nil, job.Wrap(job.CodeWorkspace, err, "%q cannot be mounted", s.path)
		}
		binds = append(binds, bind)
	}
	return binds, stage.Close, nil
}

// files are what the job finds, read-only, below /sbx/slot.
func (x *run) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, content := range map[string]any{taskFile: x.job.Spec.Task, termsFile: x.job.Spec.Agent} {
		if reflect.ValueOf(content).IsNil() {
			continue
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(content); err != nil {
			return nil, err
		}
		files[name] = b.Bytes()
	}
	return files, nil
}

// removeSlot takes everything away that the slot was. What fails is on the slot's record and tried again by the sweep.
func (x *run) removeSlot() {
	if x.slot == nil {
		return
	}
	x.closeDoor()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.kill), removeTimeout)
	defer cancel()
	if err := x.slot.Remove(ctx); err != nil {
		x.log.Error().Err(err).Str("slot", x.slot.Name()).Msg("the slot could not be removed; it is tried again")
	}
	x.r.opt.Pool.Want(x.req)
}
