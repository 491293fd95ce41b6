package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sandboxd/internal/engine"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/wire"
)

// Fill makes a slot and takes it through the start gate. On any error all is undone, on a context of its own, and the
// record says StateGone, or StateCleanup where undoing failed too. Errors: *GateError, *engine.Error, ErrNoUID,
// ErrInitTimeout, ErrInitDied, job.Error for a malformed request, or the Record function's own.
func (s *Sandbox) Fill(ctx context.Context, req Request) (*Slot, error) {
	if req.Slot == "" {
		req.Slot = NewSlotName()
	}
	if err := checkRequest(req); err != nil {
		return nil, err
	}
	if err := s.enter(req.Slot); err != nil {
		return nil, err
	}
	uid, err := s.uids.take(req.Slot)
	if err != nil {
		s.leave(req.Slot)
		return nil, err
	}
	f := &filling{Slot: s.newSlot(req, uid), req: req, clock: newClock()}
	if f.want, err = Render(req.Posture, s.facts(req, uid)); err != nil {
		s.uids.free(uid, req.Slot)
		s.leave(req.Slot)
		return nil, err
	}
	if err := f.note(ctx, StateIntent); err != nil {
		f.forget(ctx)
		return nil, err
	}
	f.clock.step("record")
	if err := f.run(ctx); err != nil {
		return nil, f.undo(ctx, err)
	}
	return f.Slot, nil
}

// forget ends a fill that could not even be recorded, and so made nothing.
func (f *filling) forget(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.s.cfg.CleanupTimeout)
	defer cancel()
	_ = f.note(ctx, StateGone) // in case the record was written after all
	f.s.uids.free(f.rec.UID, f.rec.Slot)
	f.s.leave(f.rec.Slot)
}

// filling is a slot on its way to ready. One goroutine uses it.
type filling struct {
	*Slot
	req   Request
	want  engine.Container
	clock *clock
}

// run is the fill, step by step. Each record is written before its step; what a step leaves is found by the record.
func (f *filling) run(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"directory", f.makeDir},
		{"create", f.create},
		{"inspect", f.inspect},
		{"start", f.start},
		{"connect", f.connect},
		{"secure", f.secure},
		{"gate", f.gate},
		{"binds", f.checkBinds},
		{"cgroups", f.split},
		{"ready", f.ready},
	} {
		if err := step.do(ctx); err != nil {
			return err
		}
		f.clock.step(step.name)
	}
	return nil
}

func (f *filling) makeDir(context.Context) error {
	ln, err := makeSlotDir(f.rec.Dir, f.rec.UID, f.req.Files)
	f.listener = ln
	return err
}

func (f *filling) create(ctx context.Context) error {
	made, err := f.s.eng.Create(ctx, f.want)
	if err != nil {
		return fmt.Errorf("creating the container: %w", err)
	}
	f.rec.ContainerID = made.ID
	if err := f.note(ctx, StateCreated); err != nil {
		return err
	}
	if len(made.Warnings) > 0 {
		// A limit the host cannot hold is dropped with no more than a warning.
		return f.refuse(prefixed("the engine warns: ", made.Warnings))
	}
	return nil
}

func (f *filling) inspect(ctx context.Context) error {
	got, state, err := f.s.eng.Inspect(ctx, f.rec.ContainerID)
	if err != nil {
		return fmt.Errorf("inspecting the container: %w", err)
	}
	findings := containerFindings(f.want, got, f.req.Image)
	if state.Status != "created" || state.Pid != 0 {
		findings = append(findings, fmt.Sprintf("the container is %s (pid %d) before it was started", state.Status, state.Pid))
	}
	return f.refuse(findings)
}

func (f *filling) start(ctx context.Context) error {
	if err := f.note(ctx, StateStarted); err != nil {
		return err
	}
	if err := f.s.eng.Start(ctx, f.rec.ContainerID); err != nil {
		return fmt.Errorf("starting the container: %w", err)
	}
	_, state, err := f.s.eng.Inspect(ctx, f.rec.ContainerID)
	if err != nil {
		return fmt.Errorf("inspecting the container: %w", err)
	}
	if state.Status != "running" || state.Pid <= 0 {
		return fmt.Errorf("%w: it is %s, exit code %d %s", ErrInitDied, state.Status, state.ExitCode, state.Error)
	}
	return f.identify(state.Pid)
}

// ready stores what later daemons need to take the slot over.
func (f *filling) ready(ctx context.Context) error {
	var err error
	if f.meters, err = openMeters(f.cg); err != nil {
		return err
	}
	f.rec.Key = slices.Clone(f.id.Key[:])
	f.ev.Steps = f.clock.steps
	if f.rec.Evidence, err = json.Marshal(f.ev); err != nil {
		return err
	}
	return f.note(ctx, StateReady)
}

// undo takes back a failed fill and returns its error, with those of the undoing.
func (f *filling) undo(ctx context.Context, cause error) error {
	var failed *engine.Error
	if errors.As(cause, &failed) && failed.Op == engine.OpCreate && failed.Unsure {
		f.rec.Tries = 1 // the container may still appear: removal by name will be tried again
		f.rec.State = StateCleanup
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.s.cfg.CleanupTimeout)
	defer cancel()
	if err := f.Remove(ctx); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// refuse makes a GateError of findings, if there are any.
func (sl *Slot) refuse(findings []string) error {
	if len(findings) == 0 {
		return nil
	}
	return &GateError{Slot: sl.rec.Slot, Findings: findings}
}

func prefixed(prefix string, list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, prefix+s)
	}
	return out
}

func (s *Sandbox) facts(req Request, uid uint32) Facts {
	return Facts{
		Instance: s.cfg.Instance, Slot: req.Slot, Job: string(req.Job), UID: uid, CgroupParent: s.parent,
		InitFile: s.initFile(), SbxFile: s.sbxFile(), SlotDir: s.slotDir(req.Slot), Binds: req.Binds,
		ImageEnv: req.Image.Env, ImageVolumes: req.Image.Volumes, MaskToo: s.maskToo,
		Seccomp: s.filter, AppArmor: s.appArmor, HostMilliCPUs: hostMilliCPUs(),
	}
}

func (s *Sandbox) newSlot(req Request, uid uint32) *Slot {
	return &Slot{
		s: s, posture: req.Posture,
		id:  wire.Identity{Instance: s.cfg.Instance, Slot: req.Slot, Epoch: s.cfg.Epoch, Key: wire.NewKey()},
		rec: SlotRecord{Slot: req.Slot, UID: uid, Job: req.Job, Attempt: req.Attempt, Dir: s.slotDir(req.Slot)},
	}
}

const maxBinds = 64

func checkRequest(req Request) error {
	switch {
	case !slotForm.MatchString(req.Slot):
		return job.Errorf(job.CodeInternal, "slot", "%.64q is no name of a slot", req.Slot)
	case req.Image.ID == "" || req.Image.ID != req.Posture.ImageID:
		return job.Errorf(job.CodeInternal, "image", "the image is not the posture's")
	case req.Posture.Runtime == envelope.RuntimeRunsc:
		// What a live container under runsc must look like has never been tried: no gate, no job.
		return job.Wrap(job.CodeImage, ErrNotSupported, "the runtime runsc cannot be proved safe by this version").WithHint("use the runtime runc")
	}
	if len(req.Binds) > maxBinds {
		return job.Errorf(job.CodeTooLarge, "binds", "%d mounts, at most %d", len(req.Binds), maxBinds)
	}
	seen := map[string]bool{}
	for _, b := range req.Binds {
		if !path.IsAbs(b.Source) || path.Clean(b.Source) != b.Source || b.Source == "/" {
			return job.Errorf(job.CodeInternal, "binds", "%.128q is not an absolute, clean path", b.Source)
		}
		if !bindTarget(b.Target) || seen[b.Target] {
			return job.Errorf(job.CodeInternal, "binds", "%.128q is no place for a mount, or taken", b.Target)
		}
		seen[b.Target] = true
	}
	return checkFiles(req.Files)
}

// bindTarget: /workspace, /data/<name>, /mnt/<name>.
func bindTarget(p string) bool {
	if p == PathWorkspace {
		return true
	}
	dir, name := path.Split(p)
	return slices.Contains([]string{PathData + "/", PathMnt + "/"}, dir) && fileForm.MatchString(strings.ToLower(name))
}

// bindTargets are what a container shows of foreign content: the root and all binds.
func bindTargets(c engine.Container) []string {
	out := []string{"/"}
	for _, b := range c.Binds {
		out = append(out, b.Target)
	}
	return out
}
