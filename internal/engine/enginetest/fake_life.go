package enginetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/engine"
)

// Start runs OnStart; see there. It checks the bind sources again, and the program where the image's files are known.
func (f *Fake) Start(ctx context.Context, id string) error {
	c := Call{Op: engine.OpStart, Ref: id}
	fault, err := f.admit(ctx, c)
	if err == nil {
		err = f.start(id)
	}
	return f.answer(c, fault, err)
}

func (f *Fake) start(id string) error {
	f.mu.Lock()
	r, err := f.findLocked(id)
	if err == nil {
		switch r.state.Status {
		case "running":
			f.mu.Unlock()
			return nil
		case "created", "exited":
			err = f.startableLocked(r)
		default:
			err = because(engine.Conflict, "cannot start a %s container", r.state.Status)
		}
	}
	if err != nil {
		f.mu.Unlock()
		return err
	}
	asked, full := engine.Normal(r.asked), r.state.ID
	f.mu.Unlock()

	var pid int
	var run func(context.Context) int
	if f.OnStart != nil {
		pid, run, err = f.OnStart(full, asked) // without the lock: it may call the fake
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		r.state.Error, r.state.ExitCode = err.Error(), 127
		return because(engine.Invalid, "%w", err)
	}
	if f.containers[full] != r || f.closed {
		return because(engine.Conflict, "container is marked for removal and cannot be started")
	}
	f.runLocked(r, pid, run)
	return nil
}

func (f *Fake) startableLocked(r *record) error {
	if err := sourcesExist(r.asked.Binds); err != nil {
		return err
	}
	program := append(slices.Clone(r.asked.Entrypoint), r.asked.Cmd...)[0]
	if img := f.images[r.asked.Image]; img != nil && img.files != nil && !img.files[strings.TrimPrefix(program, "/")] {
		r.state.Error, r.state.ExitCode = program+": no such file or directory", 127
		return because(engine.Invalid, "%s", r.state.Error)
	}
	return nil
}

func (f *Fake) runLocked(r *record, pid int, run func(context.Context) int) {
	if pid == 0 {
		f.lastPid++
		pid = f.lastPid
	}
	r.life++
	r.state.Status, r.state.Pid, r.state.ExitCode, r.state.Error = "running", pid, 0, ""
	r.state.StartedAt, r.state.FinishedAt, r.state.OOMKilled = time.Now(), time.Time{}, false
	ctx, cancel := context.WithCancel(f.ctx)
	r.end = cancel
	if run == nil {
		return
	}
	life := r.life
	f.runs.Go(func() {
		code := run(ctx)
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.life == life {
			f.exitLocked(r, code)
		}
	})
}

// exitLocked ends a running or paused container and does nothing to any other.
func (f *Fake) exitLocked(r *record, code int) {
	if r.state.Status != "running" && r.state.Status != "paused" {
		return
	}
	r.state.Status, r.state.Pid, r.state.ExitCode, r.state.FinishedAt = "exited", 0, code, time.Now()
	r.end()
	f.publishLocked(r, engine.Died)
}

// Kill ends the container on SIGKILL; other signals are recorded among the Calls and have no effect, as on an init that
// handles none.
func (f *Fake) Kill(ctx context.Context, id, signal string) error {
	return f.onContainer(ctx, Call{Op: engine.OpKill, Ref: id, Arg: signal}, func(r *record) error {
		name := "SIG" + strings.TrimPrefix(strings.ToUpper(signal), "SIG")
		switch {
		case unix.SignalNum(name) == 0:
			return because(engine.Invalid, "invalid signal: %q", signal)
		case r.state.Status != "running" && r.state.Status != "paused":
			return because(engine.Conflict, "container %s is not running", r.state.ID)
		case name == "SIGKILL":
			f.exitLocked(r, 137)
		}
		return nil
	})
}
