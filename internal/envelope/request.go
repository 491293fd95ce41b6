package envelope

import (
	"slices"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

// Request is what a request, or the file of a project, asks of an envelope. What is empty or nil is not asked and
// inherits; a list that is empty but not nil asks for none.
type Request struct {
	Image   string
	ImageID string // what Image is known to be; empty while it is not resolved
	Images  []string
	Runtime string
	Amounts Ask

	WorkspacePath string // resolved: clean, absolute, without links
	WorkspaceMode string
	WorkspaceGit  string
	WorkspaceLive *bool
	Mounts        []job.Mount // resolved as well

	Egress        string        // only none is served
	Budget        budget.Limits // nil and absent dimensions inherit
	BudgetInherit string        // the operator's alone: any word is refused
	Strict        bool          // refuse what would be cut to what is left

	MaxDepth    *int64 // edges from the root
	MaxTreeJobs *int64
	MaxTreeLive *int64
	Delegates   []string
	Lease       *bool
	RetentionMS *int64
	EnvInherit  []string

	Secrets    []string
	Trust      string // anything but the exact word trusted is untrusted
	MaxRisk    string
	ToolsAllow []string
	ToolsDeny  []string // added to what is denied already
	Mode       string
}

// wish is a request read into an envelope: a copy of the one it narrows with what is asked written over it.
type wish struct {
	Envelope
	asked []string // fields
	bad   []Violation
}

// read checks the words of a request and writes them over e.
func (r Request) read(e Envelope) wish {
	w := wish{Envelope: e}
	r.readPosture(&w)
	r.readWorkspace(&w)
	r.readBudget(&w)
	w.count("max_depth", r.MaxDepth, &w.MaxDepth)
	w.count("max_tree_jobs", r.MaxTreeJobs, &w.MaxTreeJobs)
	w.count("max_tree_live", r.MaxTreeLive, &w.MaxTreeLive)
	w.set("delegates", r.Delegates, &w.Delegates)
	if r.Lease != nil {
		w.ask("lease")
		w.Detached = !*r.Lease
	}
	w.count("retention", r.RetentionMS, &w.RetentionMS)
	w.set("env_inherit", r.EnvInherit, &w.EnvInherit)
	w.set("secrets", r.Secrets, &w.Secrets)
	if r.Trust != "" {
		w.ask("trust")
		w.Trust = TrustOf(r.Trust)
	}
	word(&w, "max_risk", r.MaxRisk, &w.MaxRisk, risks)
	w.set("tools.allow", r.ToolsAllow, &w.Tools.Allow)
	if denied := slices.Clone(w.Tools.Deny); r.ToolsDeny != nil {
		var more []string
		w.set("tools.deny", r.ToolsDeny, &more)
		w.Tools.Deny = atLeast.meet(denied, more)
	}
	word(&w, "mode", r.Mode, &w.Mode, turns)
	return w
}

func (r Request) readPosture(w *wish) {
	if r.Image != "" || r.ImageID != "" {
		w.ask("image")
		w.Image, w.Posture.ImageID = r.Image, r.ImageID
	}
	w.set("images", r.Images, &w.Images)
	word(w, "runtime", r.Runtime, &w.Posture.Runtime, runtimeOrder)
	w.refuse(job.CodeInvalid, append(r.Amounts.TooSmall(), r.Amounts.unknown()...)...)
	for _, a := range amounts {
		if v, ok := r.Amounts[a.name]; ok && v >= a.min {
			w.ask(a.name)
			*a.at(&w.Posture) = v
		}
	}
}

func (r Request) readWorkspace(w *wish) {
	if r.WorkspacePath != "" {
		w.path("workspace.path", r.WorkspacePath)
		w.ask("workspace.path")
		w.Workspace.Path = r.WorkspacePath
	}
	word(w, "workspace.mode", job.WorkspaceMode(r.WorkspaceMode), &w.Workspace.Mode, modes)
	word(w, "workspace.git", r.WorkspaceGit, &w.Workspace.Git, gitModes)
	if r.WorkspaceLive != nil {
		w.ask("workspace.live")
		w.Workspace.Live = *r.WorkspaceLive
	}
	if r.Mounts != nil {
		for _, m := range r.Mounts {
			w.path("mounts", m.Source)
		}
		w.ask("mounts")
		w.Mounts = slices.Clone(r.Mounts)
	}
	if r.Egress != "" && !egressModes.has(r.Egress) {
		w.refuse(job.CodeNotSubset, job.Violation{Field: "egress", Asked: short(r.Egress), Allowed: egressModes.list(), Why: "no egress is served by this version"})
	} else {
		word(w, "egress", r.Egress, &w.Egress, egressModes)
	}
}

func (r Request) readBudget(w *wish) {
	if r.BudgetInherit != "" {
		w.refuse(job.CodeForbidden, job.Violation{Field: "budget_inherit", Asked: short(r.BudgetInherit), Allowed: "no word", Why: "only the operator sets it"})
	}
	faults := r.Budget.Check()
	w.refuse(job.CodeInvalid, faults...)
	for _, d := range budget.Dims() {
		if n, ok := r.Budget[d]; ok && n > 0 {
			w.ask(d.Field())
			w.Budget = withLimit(w.Budget, d, most{n, true})
		}
	}
}
