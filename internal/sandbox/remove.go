package sandbox

import (
	"context"
	"errors"
	"fmt"

	"sandboxd/internal/engine"
	"sandboxd/internal/job"
)

// Remove removes the container and all that belongs to the slot, and frees its uid only when everything is gone.
// Idempotent. An error means that something is left: it is recorded (StateCleanup, StateQuarantined) and Remove must be
// called again, or RemoveByRecord. *StuckError names processes that cannot be killed.
func (sl *Slot) Remove(ctx context.Context) error {
	sl.removing.Lock()
	defer sl.removing.Unlock()
	rec := sl.letGo()
	if rec.State == StateGone {
		return nil
	}
	rec, err := sl.s.removeAll(ctx, rec)
	sl.mu.Lock()
	sl.rec = rec
	sl.mu.Unlock()
	sl.s.leave(rec.Slot)
	return err
}

// letGo closes all that this daemon holds of the slot.
func (sl *Slot) letGo() SlotRecord {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if !sl.closed {
		sl.closed = true
		if sl.conn != nil {
			_ = sl.conn.Close()
		}
		if sl.listener != nil {
			_ = sl.listener.Close()
		}
		if sl.meters != nil {
			_ = sl.meters.close()
		}
		sl.init.close()
		sl.stub.close()
		sl.s.cores.release(sl.cpus)
		sl.cpus = nil
	}
	return sl.rec
}

// RemoveByRecord removes everything a record speaks of: the container (by id, or by name and both labels), its cgroups,
// the slot's directory; then it frees the uid. Idempotent; an error means: try again. The slot must not be in use by
// this daemon.
func (s *Sandbox) RemoveByRecord(ctx context.Context, r SlotRecord) error {
	if !slotForm.MatchString(r.Slot) {
		return job.Errorf(job.CodeInternal, "slot", "%.64q is no name of a slot", r.Slot)
	}
	if err := s.enter(r.Slot); err != nil {
		return err
	}
	defer s.leave(r.Slot)
	_, err := s.removeAll(ctx, r)
	return err
}

// removeAll takes everything away and records how it went. The uid comes last: while anything of the slot may live,
// nobody else gets it.
func (s *Sandbox) removeAll(ctx context.Context, r SlotRecord) (SlotRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CleanupTimeout)
	defer cancel()
	err := s.removeParts(ctx, r)
	if err == nil {
		r.State, r.Error = StateGone, ""
		if err = s.record(ctx, r); err == nil {
			s.uids.free(r.UID, r.Slot)
			return r, nil
		}
	}
	// Not on a context that may be what failed.
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), s.cfg.CleanupTimeout)
	defer cancel()
	r.State, r.Error, r.Tries = StateCleanup, err.Error(), r.Tries+1
	var stuck *StuckError
	if errors.As(err, &stuck) {
		r.State = StateQuarantined
	}
	return r, errors.Join(err, s.record(ctx, r))
}

func (s *Sandbox) removeParts(ctx context.Context, r SlotRecord) error {
	id, err := s.removeContainer(ctx, r)
	if err != nil {
		if stuck := s.stuckProcesses(id); len(stuck) > 0 {
			err = errors.Join(&StuckError{Slot: r.Slot, Pids: stuck}, err)
		}
		return err
	}
	if err := s.removeCgroups(ctx, id); err != nil {
		return named(err, r.Slot)
	}
	return removeSlotDir(s.slotDir(r.Slot))
}

// unsureTries is how often a container that may still appear, because the answer to its creation was lost, must have
// been looked for in vain.
const unsureTries = 3

// removeContainer removes the container of a record and returns its id, "" where none was ever known.
func (s *Sandbox) removeContainer(ctx context.Context, r SlotRecord) (string, error) {
	name := ContainerName(s.cfg.Instance, r.Slot)
	ref := r.ContainerID
	if ref == "" {
		ref = name
	}
	_, state, err := s.eng.Inspect(ctx, ref)
	if err != nil && engine.KindOf(err) == engine.NotFound {
		if r.ContainerID == "" && r.State == StateCleanup && r.Tries > 0 && r.Tries < unsureTries {
			return "", fmt.Errorf("container %s: its creation was never answered and it may still appear", name)
		}
		return r.ContainerID, nil
	}
	if err != nil {
		return r.ContainerID, fmt.Errorf("removing the container: %w", err)
	}
	if state.Name != name || state.Labels[LabelInstance] != s.cfg.Instance || state.Labels[LabelSlot] != r.Slot {
		if r.ContainerID == "" {
			return "", nil // somebody else's of that name: ours never came to be
		}
		return "", fmt.Errorf("container %.12s: %w", r.ContainerID, ErrNotOurs)
	}
	if err := s.eng.Remove(ctx, state.ID); err != nil && engine.KindOf(err) != engine.NotFound {
		return state.ID, fmt.Errorf("removing the container: %w", err)
	}
	return state.ID, nil
}

// named gives a StuckError of the cgroups the slot's name.
func named(err error, slot string) error {
	var stuck *StuckError
	if errors.As(err, &stuck) {
		stuck.Slot = slot
	}
	return err
}
