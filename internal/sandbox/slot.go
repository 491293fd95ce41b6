package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"sandboxd/internal/engine"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/wire"
)

// Slot is one prepared container. Its methods may be called from several goroutines.
type Slot struct {
	// Constant once the slot is ready.
	s        *Sandbox
	id       wire.Identity
	readyMsg wire.Ready
	hardened bool // every mount is nosuid
	init     *process
	stub     *process // nil after Adopt
	cg       *cgroups // nil until the container's init is known
	meters   *meters

	removing sync.Mutex // held by Remove from end to end

	mu       sync.Mutex // guards all below, and keeps init and stub open while it is held
	posture  envelope.Posture
	rec      SlotRecord
	ev       Evidence
	listener *net.UnixListener // until init has connected
	conn     *wire.Conn
	cpus     []int
	closed   bool // Remove was called
}

// Name is the slot's name.
func (sl *Slot) Name() string { return sl.id.Slot }

// Record is the slot's present record.
func (sl *Slot) Record() SlotRecord {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.rec
}

// Conn is the established connection to init. After Fill its next frame is the one after ready (seq 1, not acked yet);
// after Adopt or Reconnect it goes on where the caller said. Closing it is the caller's; Remove closes it too.
func (sl *Slot) Conn() *wire.Conn {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.conn
}

// Ready is init's first message, as Fill took it from the connection; zero after Adopt.
func (sl *Slot) Ready() wire.Ready { return sl.readyMsg }

// Identity is who the slot is in the init protocol, key included.
func (sl *Slot) Identity() wire.Identity { return sl.id }

// ContainerID is the engine's id of the container.
func (sl *Slot) ContainerID() string { return sl.Record().ContainerID }

// UID is the slot's uid and gid; its group places are the seven ids after it.
func (sl *Slot) UID() uint32 { return sl.Record().UID }

// Dir is the slot's directory on the host, seen as /sbx/slot inside.
func (sl *Slot) Dir() string { return sl.Record().Dir }

// InitPid is the host pid of init.
func (sl *Slot) InitPid() int { return sl.init.pid }

// StubPid is the host pid of the stub, which becomes the command; 0 after Adopt.
func (sl *Slot) StubPid() int {
	if sl.stub == nil {
		return 0
	}
	return sl.stub.pid
}

// Evidence is what the gate saw.
func (sl *Slot) Evidence() Evidence {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return sl.ev
}

// HandOver is the last look before the job's start message may be sent: it reads status, cgroup and mountinfo again,
// writes the posture's limits to the cgroups and reads them back, and gives init and stub their cores. No engine call;
// about a millisecond. The error is a *GateError when the container is not what it was; then it must be removed.
func (sl *Slot) HandOver(ctx context.Context, p envelope.Posture) error {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	switch {
	case sl.closed:
		return ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case sl.stub == nil:
		return fmt.Errorf("hand-over of adopted slot %s: %w", sl.id.Slot, ErrNotSupported)
	}
	if err := sl.fitsLocked(p); err != nil {
		return err
	}
	if findings, err := sl.recheckLocked(map[string]*process{"init": sl.init, "stub": sl.stub}); err != nil {
		return err
	} else if err := sl.refuse(findings); err != nil {
		return err
	}
	if err := sl.setLimits(containerLimits(p, hostMilliCPUs()), jobLimits(p)); err != nil {
		return err
	}
	sl.posture = p
	sl.s.cores.release(sl.cpus)
	sl.cpus = sl.s.cores.take(p.MilliCPUs)
	for _, proc := range []*process{sl.init, sl.stub} {
		if err := pin(proc, sl.cpus); err != nil {
			return err
		}
	}
	rec := sl.rec
	rec.State = StateTaken
	var err error
	if rec.Evidence, err = json.Marshal(sl.ev); err != nil {
		return err
	}
	if err := sl.s.record(ctx, rec); err != nil {
		return err
	}
	sl.rec = rec
	return nil
}

// fitsLocked refuses a posture that the container was not made for: only what the cgroups hold can still change.
func (sl *Slot) fitsLocked(p envelope.Posture) error {
	f := Facts{Instance: sl.id.Instance, HostMilliCPUs: hostMilliCPUs()}
	if err := renderable(p, f); err != nil {
		return err
	}
	if _, err := tmpfsMounts(p, f); err != nil {
		return err
	}
	made, wanted := sl.posture, p
	for _, q := range []*envelope.Posture{&made, &wanted} {
		q.MilliCPUs, q.Memory, q.Pids, q.OutputKeep, q.TimeoutMS = 0, 0, 0, 0, 0
	}
	if made != wanted {
		return job.Errorf(job.CodeInternal, "posture", "slot %s was made for another posture", sl.id.Slot)
	}
	return nil
}

// recheckLocked compares the container with what the gate let pass.
func (sl *Slot) recheckLocked(processes map[string]*process) ([]string, error) {
	var out []string
	for who, p := range processes {
		st, err := p.status()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", who, ErrInitDied, err)
		}
		out = append(out, processFindings(who, st, sl.rec.UID)...)
		in, err := p.cgroups()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", who, ErrInitDied, err)
		}
		out = append(out, sl.cg.placeFindings(who, in)...)
	}
	live, err := sl.init.mounts()
	if err != nil {
		return nil, fmt.Errorf("init: %w: %w", ErrInitDied, err)
	}
	if now := mountStrings(live); !slices.Equal(now, sl.ev.Mounts) {
		out = append(out, changes("mount", sl.ev.Mounts, now)...)
	}
	slices.Sort(out)
	return out, nil
}

// changes lists what is in only one of two lists.
func changes(what string, before, now []string) []string {
	var out []string
	for _, m := range before {
		if !slices.Contains(now, m) {
			out = append(out, what+" gone since the gate: "+m)
		}
	}
	for _, m := range now {
		if !slices.Contains(before, m) {
			out = append(out, what+" new since the gate: "+m)
		}
	}
	if len(out) == 0 {
		out = append(out, what+" list changed since the gate")
	}
	return out
}

// Readings reads the kernel's figures through descriptors that stay open, so it works without the engine, until the
// container is gone.
func (sl *Slot) Readings() (Readings, error) {
	r, err := sl.meters.read()
	if err == nil {
		r.Sockets = sl.socketMemory()
	}
	return r, err
}

// socketMemory is what the job's sockets hold outside of its memory limit. On cgroup v1 the limit of TCP buffers is a
// soft one (about 190 KiB a connection get by), and netlink queues are counted nowhere: 300 unread sockets held 270 MiB.
func (sl *Slot) socketMemory() int64 {
	total := int64(0)
	if sl.cg.h.version == 1 {
		text, _ := readFile(filepath.Join(sl.cg.container["memory"], "memory.kmem.tcp.usage_in_bytes"))
		total, _ = strconv.ParseInt(text, 10, 64)
	}
	table, _ := sl.init.read("net/netlink")
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 4 {
			queued, _ := strconv.ParseInt(f[4], 10, 64) // Rmem; 0 for the heading
			total += queued
		}
	}
	return total
}

// KillJob kills the command and all its descendants and returns when none is left; init lives on and reports. Without a
// cgroup for the job it kills the container by the engine. It fails with *StuckError or when ctx ends.
func (sl *Slot) KillJob(ctx context.Context) error {
	if !sl.cg.two {
		return sl.Kill(ctx)
	}
	err := sl.cg.killJob(ctx)
	return named(err, sl.id.Slot)
}

// Freeze stops every process of the job until Thaw; ErrNoJobCgroup where that cannot be done. When ctx ends first the
// job is thawed again.
func (sl *Slot) Freeze(ctx context.Context) error {
	err := sl.cg.freeze(ctx)
	if err != nil && sl.cg.two {
		_ = sl.cg.setFrozen(false)
	}
	return err
}

// Thaw lets a frozen job go on; it does nothing when the job is not frozen.
func (sl *Slot) Thaw(context.Context) error {
	if !sl.cg.two {
		return ErrNoJobCgroup
	}
	return sl.cg.setFrozen(false)
}

// Alive asks the engine how the container stands.
func (sl *Slot) Alive(ctx context.Context) (engine.State, error) {
	_, state, err := sl.s.eng.Inspect(ctx, sl.ContainerID())
	return state, err
}

// Kill kills the whole container, init included, by the engine. A container that is gone already is no error.
func (sl *Slot) Kill(ctx context.Context) error {
	err := sl.s.eng.Kill(ctx, sl.ContainerID(), "SIGKILL")
	if kind := engine.KindOf(err); err != nil && (kind == engine.NotFound || kind == engine.Conflict) {
		return nil
	}
	return err
}

// note records a new state of the slot, before the step it speaks of.
func (sl *Slot) note(ctx context.Context, state State) error {
	sl.rec.State = state
	return sl.s.record(ctx, sl.rec)
}
