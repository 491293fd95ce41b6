package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Strays are things that look like ours and have no record. Containers are reported and never touched; empty cgroups
// and slot directories, which live where only we may write, are taken away.
type Strays struct {
	Containers []string // id and name
	Removed    []string // directories and empty cgroups
}

// Sweep compares the engine's list, the cgroups and the run directory with the records.
func (s *Sandbox) Sweep(ctx context.Context, known []SlotRecord) (Strays, error) {
	s.mu.Lock()
	opened := s.opened && !s.closed
	s.mu.Unlock()
	if !opened {
		return Strays{}, ErrClosed
	}
	hasSlot := func(slot string) bool {
		return s.isLive(slot) || slices.ContainsFunc(known, func(r SlotRecord) bool { return r.Slot == slot })
	}
	list, err := s.eng.List(ctx, map[string]string{LabelInstance: s.cfg.Instance})
	if err != nil {
		return Strays{}, fmt.Errorf("listing our containers: %w", err)
	}
	var out Strays
	ids := map[string]bool{}
	for _, r := range known {
		ids[r.ContainerID] = true
	}
	for _, c := range list {
		if !ids[c.ID] && !hasSlot(c.Labels[LabelSlot]) {
			out.Containers = append(out.Containers, fmt.Sprintf("%.12s %.64q", c.ID, c.Name))
		}
		ids[c.ID] = true
	}
	slices.Sort(out.Containers)
	cgroups, err := s.removeStrayCgroups(func(id string) bool { return ids[id] })
	dirs, err2 := s.removeStrayDirs(hasSlot)
	out.Removed = append(cgroups, dirs...)
	return out, errors.Join(err, err2)
}
