package admission

import (
	"context"
	"math"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// checkEnvelope narrows by what is known without asking anybody, names and paths as they are written, so that what could
// never be had costs nothing. checkWhole narrows once more when all is resolved.
func checkEnvelope(_ context.Context, _ *Checker, a *attempt) error {
	if a.req.Limits.DiskBytes != nil || a.req.Project != nil && a.req.Project.Limits.DiskBytes != nil {
		return invalid("limits.disk_bytes", "a job has no disk of its own without an overlay workspace; leave it out").
			WithHint("home_bytes, tmp_bytes and out_bytes bound what a job may write")
	}
	a.above.Project = askProject(a.req.Project)
	known := a.ask
	if a.parent != nil {
		known.Image = "" // by another name it may be the parent's
	}
	e, bad := envelope.Narrow(a.above, known)
	if len(bad) > 0 {
		if _, all := envelope.Narrow(a.above, a.ask); len(all) > len(bad) {
			bad = all
		}
		return envelope.Denial(bad)
	}
	a.out.Envelope = e
	return a.checkServed()
}

// checkServed refuses by name what the envelope would allow and this version does not do.
func (a *attempt) checkServed() error {
	if w := a.req.Workspace; w != nil && w.Mode != "" && w.Mode != job.WorkspaceRO {
		return invalid("workspace.mode", "%q is not served by this version; use ro", string(w.Mode))
	}
	if len(a.req.Secrets) > 0 {
		return invalid("secrets", "secrets are not served by this version; leave them out")
	}
	return nil
}

// checkWhole decides the envelope with everything resolved, and what is stored of it.
func checkWhole(_ context.Context, _ *Checker, a *attempt) error {
	e, bad := envelope.Narrow(a.above, a.ask)
	if len(bad) > 0 {
		return envelope.Denial(bad)
	}
	s := &a.out.Spec
	if a.req.Image == "" {
		e.Image, e.Posture.ImageID = s.Image, s.ImageID
	}
	s.ImageID = e.Posture.ImageID // that of the parent, where it names the same image
	readOnly(&e)
	if e.Workspace.Path != "" {
		s.Workspace = &job.Workspace{Path: e.Workspace.Path, Mode: e.Workspace.Mode}
	}
	s.Mounts = e.Mounts
	s.Profile = e.Profile
	s.Agent = agentTerms(e, a.req.Model)
	// The end of its parent ends a child: only its own wish makes it hang on a connection of its own.
	s.Lease = a.req.Lease || a.parent == nil && !e.Detached
	a.out.Envelope = e
	a.fund()
	return nil
}

// readOnly holds what a profile would give by itself to what this version serves.
func readOnly(e *envelope.Envelope) {
	w := &e.Workspace
	if w.Mode != job.WorkspaceRO {
		w.Mode, e.Origins["workspace.mode"] = job.WorkspaceRO, envelope.Clamped
	}
	if w.Git != envelope.GitRO {
		w.Git, e.Origins["workspace.git"] = envelope.GitRO, envelope.Clamped
	}
}

// fund says what the ledger is asked for.
func (a *attempt) fund() {
	e := a.out.Envelope
	a.out.Budget, a.out.Strict = envelope.Asks(e, a.above, a.ask)
	if a.parent == nil || e.BudgetInherit == envelope.BudgetOperator {
		a.out.Budget = e.Budget
	}
	a.out.Inherit = e.BudgetInherit
	a.out.Caps = Caps{MaxJobs: count(e.MaxTreeJobs), MaxLive: count(e.MaxTreeLive)}
	a.out.Places = max(a.out.Caps.MaxLive-1, 0)
}

func count(n int64) int { return int(min(max(n, 0), math.MaxInt32)) }
