package envelope

import (
	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

// compileRisk binds the posture by risk and trust, whatever the agent does. What was asked beyond that is refused; what
// was only inherited gives way.
func (n *narrowing) compileRisk() {
	w := &n.e.Workspace
	if w.Path == "" {
		*w = noWorkspace
		return
	}
	most, why := job.WorkspaceRW, ""
	switch {
	case n.e.Below(RiskLocalWrite):
		most, why = job.WorkspaceRO, "max_risk is below "+RiskLocalWrite
	case TrustOf(n.e.Trust) == Untrusted:
		most, why = job.WorkspaceOverlay, "an untrusted job gets at most a copy"
	case n.e.Posture.Runtime == RuntimeRunsc:
		most, why = job.WorkspaceOverlay, "under runsc there is at most a copy"
	}
	if !modes.within(w.Mode, most) {
		n.yield("workspace.mode", string(w.Mode), string(most), why)
		w.Mode = most
	}
	if w.Git == GitRW && w.Mode != job.WorkspaceRW {
		n.yield("workspace.git", GitRW, GitRO, "only in a rw workspace may .git be written")
		w.Git = GitRO
	}
	if w.Live && TrustOf(n.e.Trust) == Untrusted {
		n.yield("workspace.live", "true", "false", "an untrusted job gets no live workspace")
		w.Live = false
	}
}

// yield refuses a field that was asked, or marks one that was not as cut.
func (n *narrowing) yield(field, asked, allowed, why string) {
	if n.asked[field] {
		n.refuse(job.CodeNotSubset, job.Violation{Field: field, Asked: asked, Allowed: allowed, Why: why})
		return
	}
	n.e.Origins[field] = Clamped
}

// wallClock holds the timeout to what is left of the parent's wall clock and to the budget of wall clock.
func (n *narrowing) wallClock() {
	left, why := n.e.Posture.TimeoutMS, ""
	if n.above.Parent != nil && n.above.LeftMS < left {
		left, why = n.above.LeftMS, "it is what is left of its parent's time"
	}
	if wall, limited := n.e.Budget.Of(budget.WallMS); limited && wall < left {
		left, why = wall, "it is the budget of wall clock"
	}
	if left == n.e.Posture.TimeoutMS {
		return
	}
	asked := showMS(n.e.Posture.TimeoutMS)
	switch {
	case left < MinTimeoutMS:
		n.refuse(job.CodeBudgetExhausted, job.Violation{Field: "timeout", Asked: asked, Allowed: showMS(max(left, 0)), Why: why + ", and less than a job can have"})
	case n.strict && n.asked["timeout"]:
		n.refuse(job.CodeBudgetExhausted, job.Violation{Field: "timeout", Asked: asked, Allowed: "at most " + showMS(left), Why: why + ", and the request is strict"})
	default:
		n.e.Posture.TimeoutMS = left
		n.e.Origins["timeout"] = Clamped
	}
}
