package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"sandboxd/internal/envelope"
	"sandboxd/internal/wire"
)

// Adopt takes over the living container of an earlier daemon: it finds it by its record, compares it with what the gate
// let pass then and with the posture's limits, opens the slot's socket again and waits, until ctx ends, for init to
// resume at the last stored place. The error is NotFound (engine.KindOf) or ErrInitDied when there is nothing to adopt,
// and a *GateError when it is not what it was; removing is the caller's next step then.
func (s *Sandbox) Adopt(ctx context.Context, r SlotRecord, posture envelope.Posture, at wire.Position) (*Slot, wire.Held, error) {
	if err := s.enter(r.Slot); err != nil {
		return nil, wire.Held{}, err
	}
	f, held, err := s.adopt(ctx, r, posture, at)
	if err != nil {
		f.letGo()
		s.leave(r.Slot)
		return nil, wire.Held{}, fmt.Errorf("adopting slot %s: %w", r.Slot, err)
	}
	return f.Slot, held, nil
}

func (s *Sandbox) adopt(ctx context.Context, r SlotRecord, posture envelope.Posture, at wire.Position) (*filling, wire.Held, error) {
	f := &filling{Slot: &Slot{s: s, rec: r, posture: posture}}
	f.id = wire.Identity{Instance: s.cfg.Instance, Slot: r.Slot, Epoch: s.cfg.Epoch}
	if len(r.Key) != wire.KeySize || r.ContainerID == "" {
		return f, wire.Held{}, fmt.Errorf("%w: the record has no key or container: the slot was never ready", ErrInitDied)
	}
	copy(f.id.Key[:], r.Key)
	if err := json.Unmarshal(r.Evidence, &f.ev); err != nil {
		return f, wire.Held{}, fmt.Errorf("stored evidence: %w", err)
	}
	if err := f.findAgain(ctx); err != nil {
		return f, wire.Held{}, err
	}
	held, err := f.Reconnect(ctx, at)
	return f, held, err
}

// findAgain identifies the container and compares it with the stored evidence.
func (f *filling) findAgain(ctx context.Context) error {
	_, state, err := f.s.eng.Inspect(ctx, f.rec.ContainerID)
	switch {
	case err != nil:
		return err
	case state.Name != ContainerName(f.s.cfg.Instance, f.rec.Slot) || state.Labels[LabelInstance] != f.s.cfg.Instance:
		return ErrNotOurs
	case state.Status != "running" && state.Status != "paused":
		return fmt.Errorf("%w: it is %s, exit code %d", ErrInitDied, state.Status, state.ExitCode)
	}
	if err := f.identify(state.Pid); err != nil {
		return err
	}
	f.cg.two = f.ev.TwoCgroups && exists(filepath.Join(f.cg.container[f.cg.memberOf()], jobLeaf))
	var findings []string
	if f.cg.two != f.ev.TwoCgroups {
		findings = append(findings, "the job's cgroup is gone")
	}
	changed, err := f.recheckLocked(map[string]*process{"init": f.init})
	if err != nil {
		return err
	}
	_, limits, err := f.cg.readBack(containerLimits(f.posture, hostMilliCPUs()), jobLimits(f.posture), knob.ofJob)
	if err != nil {
		return err
	}
	if err := f.refuse(append(append(findings, changed...), limits...)); err != nil {
		return err
	}
	f.meters, err = openMeters(f.cg)
	return err
}

// handshakePatience is how long one connection may take to prove itself.
const handshakePatience = time.Second

// Reconnect opens the slot's socket again and waits, until ctx ends, for init to resume at the given place. It replaces
// Conn and closes the old one. One connection is looked at at a time: a foreign process is turned away by its pid, and
// init has a second to prove that it holds the key.
func (sl *Slot) Reconnect(ctx context.Context, at wire.Position) (wire.Held, error) {
	if ctx.Err() != nil {
		return wire.Held{}, context.Cause(ctx)
	}
	init, err := sl.holdInit()
	if err != nil {
		return wire.Held{}, err
	}
	defer init.close()
	dir := sl.Dir()
	ln, err := listen(dir, sl.UID())
	if err != nil {
		return wire.Held{}, err
	}
	defer func() { _ = closeListener(ln, dir) }()
	for {
		nc, err := accept(ctx, ln, init)
		if err != nil {
			return wire.Held{}, err
		}
		conn, held, err := sl.resume(nc, init, at)
		if err != nil {
			_ = nc.Close()
			continue
		}
		sl.mu.Lock()
		old, closed := sl.conn, sl.closed
		if !closed {
			sl.conn = conn
		}
		sl.mu.Unlock()
		if closed {
			_ = conn.Close()
			return wire.Held{}, ErrClosed
		}
		if old != nil {
			_ = old.Close()
		}
		return held, nil
	}
}

// holdInit gives a hold on init of the caller's own, for Remove may close the slot's meanwhile.
func (sl *Slot) holdInit() (*process, error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.closed {
		return nil, ErrClosed
	}
	return sl.init.dup()
}

func (sl *Slot) resume(nc *net.UnixConn, init *process, at wire.Position) (*wire.Conn, wire.Held, error) {
	if err := sl.refuse(peerFindings(nc, init, sl.UID())); err != nil {
		return nil, wire.Held{}, err
	}
	if err := nc.SetDeadline(time.Now().Add(handshakePatience)); err != nil {
		return nil, wire.Held{}, err
	}
	conn := wire.NewConn(nc, wire.SideDaemon)
	held, err := wire.AcceptResume(conn, sl.id, at)
	if err != nil {
		return nil, wire.Held{}, err
	}
	return conn, held, conn.SetDeadline(time.Time{})
}
