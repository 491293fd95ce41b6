package main

import (
	"context"
	"encoding/json"
	"time"

	"sandboxd/api"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/sandbox"
)

// Version says what this is, so that a foreign socket is recognised.
func (d *daemon) Version() api.VersionInfo {
	return api.VersionInfo{Product: api.Product, Version: version, API: api.Version, Instance: d.instance}
}

// Health is the state of the daemon, with the caller's own jobs.
func (d *daemon) Health(ctx context.Context, c job.Caller) api.Health {
	s := &d.engine
	s.mu.Lock()
	eng := api.EngineHealth{Up: s.up, Version: s.version, API: s.api, Error: s.problem}
	s.mu.Unlock()
	h := api.Health{
		Status: "ok", Engine: eng, Running: d.sched.Running(), MaxRunning: d.cfg.Capacity.MaxRunning, Queued: d.sched.Queued(),
		Jobs: d.unfinished(ctx, c), Cleanups: len(d.slots.pending()), UptimeMS: time.Since(d.started).Milliseconds(),
	}
	for _, r := range d.slots.pending() {
		if r.State == sandbox.StateQuarantined {
			h.Notes = append(h.Notes, "slot "+r.Slot+" is quarantined: "+r.Error)
		}
	}
	if !eng.Up || len(h.Notes) > 0 {
		h.Status = "degraded"
	}
	if d.draining.Load() {
		h.Status = "draining"
	}
	return h
}

// Profiles lists what a request may name.
func (d *daemon) Profiles() []api.Profile {
	var out []api.Profile
	for _, p := range d.cfg.Profiles {
		out = append(out, api.Profile{Name: p.Name, Description: p.Description, Fields: apiFields(p.Start().Fields())})
	}
	return out
}

// Slot tells where a job runs; nil where it holds no slot.
func (d *daemon) Slot(_ context.Context, id job.ID) (*api.Slot, error) { return d.slots.view(id), nil }

// EnvelopeFields shows a stored envelope.
func (d *daemon) EnvelopeFields(raw json.RawMessage) []api.EnvelopeField {
	var e envelope.Envelope
	if json.Unmarshal(raw, &e) != nil {
		return nil
	}
	return apiFields(e.Fields())
}

func apiFields(fields []envelope.Field) []api.EnvelopeField {
	out := make([]api.EnvelopeField, len(fields))
	for i, f := range fields {
		out[i] = api.EnvelopeField{Field: f.Name, Value: f.Value, Origin: string(f.Origin)}
	}
	return out
}
