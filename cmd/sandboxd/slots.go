package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/store"
)

// slotTable keeps the records of slots: in the node's state for a later daemon, and here for those who look.
type slotTable struct {
	db store.NodeState

	mu   sync.Mutex
	rows map[string]sandbox.SlotRecord // by slot
}

// load reads what an earlier daemon left.
func (t *slotTable) load(ctx context.Context) error {
	rows, err := t.db.Slots(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = map[string]sandbox.SlotRecord{}
	for _, r := range rows {
		t.rows[r.ID] = sandbox.SlotRecord{Slot: r.ID, State: sandbox.State(r.State), UID: r.UID, ContainerID: r.ContainerID,
			Job: r.Job, Attempt: r.Attempt, Dir: r.Dir, Key: r.Key, Evidence: r.Evidence, Error: r.Error, Tries: r.Tries}
	}
	return nil
}

// record stores a slot's new state; it is what the sandbox calls before each step.
func (t *slotTable) record(ctx context.Context, r sandbox.SlotRecord) error {
	if r.State == sandbox.StateGone {
		if err := t.db.DeleteSlot(ctx, r.Slot); err != nil {
			return err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.rows, r.Slot)
		return nil
	}
	err := t.db.PutSlot(ctx, store.Slot{ID: r.Slot, State: string(r.State), UID: r.UID, ContainerID: r.ContainerID, Job: r.Job,
		Attempt: r.Attempt, Dir: r.Dir, Key: r.Key, Evidence: r.Evidence, Error: r.Error, Tries: r.Tries, UpdatedMS: time.Now().UnixMilli()})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[r.Slot] = r
	return nil
}

// all returns the present records.
func (t *slotTable) all() []sandbox.SlotRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]sandbox.SlotRecord, 0, len(t.rows))
	for _, r := range t.rows {
		out = append(out, r)
	}
	return out
}

// Slot finds the slot of a job.
func (t *slotTable) Slot(_ context.Context, id job.ID) (sandbox.SlotRecord, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rows {
		if r.Job == id && r.State != sandbox.StateCleanup && r.State != sandbox.StateQuarantined {
			return r, true, nil
		}
	}
	return sandbox.SlotRecord{}, false, nil
}

// view is a slot as callers see it; the key stays here.
func (t *slotTable) view(id job.ID) *api.Slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rows {
		if r.Job != id {
			continue
		}
		v := &api.Slot{ID: r.Slot, ContainerID: r.ContainerID, UID: r.UID, State: string(r.State), Error: r.Error}
		if len(r.Evidence) > 0 {
			v.Evidence = json.RawMessage(r.Evidence)
		}
		return v
	}
	return nil
}

// pending lists the slots whose cleanup is to be tried again.
func (t *slotTable) pending() []sandbox.SlotRecord {
	var out []sandbox.SlotRecord
	for _, r := range t.all() {
		if r.State == sandbox.StateCleanup || r.State == sandbox.StateQuarantined {
			out = append(out, r)
		}
	}
	return out
}
