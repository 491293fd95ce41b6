package server

import (
	"context"
	"errors"
	"sync"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// What holds for requests from inside a job.

// show makes a job fit for its viewer. To a job, paths are those in the container, and what belongs to the host (slot,
// place among everybody's jobs) is left out.
func (x *exchange) show(j api.Job) api.Job {
	if x.caller.Job == "" {
		return j
	}
	if j.Workspace != nil {
		j.Workspace = &api.Workspace{Path: "/workspace", Mode: j.Workspace.Mode}
	}
	mounts := j.Mounts
	j.Mounts = nil
	for _, m := range mounts {
		j.Mounts = append(j.Mounts, api.Mount{Source: "/mnt/" + m.Name, Name: m.Name})
	}
	j.Slot, j.Position = nil, 0
	var fields []api.EnvelopeField
	for _, f := range j.Envelope {
		if !hostPaths[f.Field] {
			fields = append(fields, f)
		}
	}
	j.Envelope = fields
	return j
}

// hostPaths are the fields of an envelope that tell where the host keeps what a job sees.
var hostPaths = map[string]bool{"workspace.path": true, "mounts": true}

// showHealth leaves out what tells a job of others.
func (x *exchange) showHealth(h api.Health) api.Health {
	if x.caller.Job == "" {
		return h
	}
	return api.Health{Status: h.Status, Engine: api.EngineHealth{Up: h.Engine.Up}, Jobs: h.Jobs}
}

// notItself refuses what a job may do to its descendants only.
func (x *exchange) notItself(j job.Job, text string) error {
	if j.ID != x.caller.Job {
		return nil
	}
	return job.Errorf(job.CodeForbidden, "ref", "%s", text)
}

// blocks tells the waiter that the caller, if it is a job, waits for another one. The caller is answered after release.
func (s *Server) blocks(ctx context.Context, x *exchange, on job.Job) (blocked context.Context, release func()) {
	if s.cfg.Waiter == nil || x.caller.Job == "" || on.State == job.Done {
		return ctx, func() {}
	}
	blocked, release = s.cfg.Waiter.Wait(ctx, x.caller, on.ID)
	return blocked, sync.OnceFunc(release)
}

// denied is why a wait was denied, nil where it was not.
func denied(blocked context.Context) error {
	var e *job.Error
	if errors.As(context.Cause(blocked), &e) {
		return e
	}
	return nil
}
