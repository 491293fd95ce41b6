package envelope

import (
	"sandboxd/internal/job"
)

// fields is the table: every field of an envelope with its order. A test fails where one is missing.
var fields = buildFields()

func buildFields() []field {
	out := []field{
		imageField(),
		at("runtime", "Posture.Runtime", "runtime", func(e *Envelope) *string { return &e.Posture.Runtime }, strength),
	}
	for _, a := range amounts {
		asked := "limits." + a.name
		if a.name == "timeout" {
			asked = a.name
		}
		out = append(out, at(a.name, a.path, asked, func(e *Envelope) *int64 { return a.at(&e.Posture) }, atMost(a.show)))
	}
	out = append(out,
		at("inodes", "Posture.Inodes", "inodes", func(e *Envelope) *int64 { return &e.Posture.Inodes }, atMost(showCount)),
		at("home_exec", "Posture.HomeExec", "home_exec", func(e *Envelope) *bool { return &e.Posture.HomeExec }, noBeforeYes),
		at("disk_bytes", "Posture.DiskBytes", "limits.disk_bytes", func(e *Envelope) *int64 { return &e.Posture.DiskBytes }, atMost(ShowBytes)),
		at("shm", "Posture.Shm", "shm", func(e *Envelope) *bool { return &e.Posture.Shm }, noBeforeYes),
		at("images", "Images", "images", func(e *Envelope) *[]string { return &e.Images }, names(SameImage)),
		at("workspace.path", "Workspace.Path", "workspace.path", func(e *Envelope) *string { return &e.Workspace.Path }, paths),
		at("workspace.mode", "Workspace.Mode", "workspace.mode", func(e *Envelope) *job.WorkspaceMode { return &e.Workspace.Mode }, modes.order()),
		at("workspace.git", "Workspace.Git", "workspace.git", func(e *Envelope) *string { return &e.Workspace.Git }, gitModes.order()),
		at("workspace.live", "Workspace.Live", "workspace.live", func(e *Envelope) *bool { return &e.Workspace.Live }, noBeforeYes),
		at("mounts", "Mounts", "mounts", func(e *Envelope) *[]job.Mount { return &e.Mounts }, sources),
		at("egress", "Egress", "egress.mode", func(e *Envelope) *string { return &e.Egress }, egressModes.order()),
		at("budget_inherit", "BudgetInherit", "budget.inherit", func(e *Envelope) *string { return &e.BudgetInherit }, inherits.order()))
	out = append(out, budgetFields()...)
	return append(append(out, treeFields()...), agentFields()...)
}

// treeFields bound delegation.
func treeFields() []field {
	return []field{
		profileField(),
		depthField(),
		at("max_depth", "MaxDepth", "max_depth", func(e *Envelope) *int64 { return &e.MaxDepth }, atMost(showCount)),
		at("max_tree_jobs", "MaxTreeJobs", "max_tree_jobs", func(e *Envelope) *int64 { return &e.MaxTreeJobs }, atMost(showCount)),
		at("max_tree_live", "MaxTreeLive", "max_tree_live", func(e *Envelope) *int64 { return &e.MaxTreeLive }, atMost(showCount)),
		at("delegates", "Delegates", "delegates", func(e *Envelope) *[]string { return &e.Delegates }, names(equal)),
		at("lease", "Detached", "lease", func(e *Envelope) *bool { return &e.Detached }, leased),
		at("retention", "RetentionMS", "retention", func(e *Envelope) *int64 { return &e.RetentionMS }, atMost(showMS)),
		at("env_inherit", "EnvInherit", "env_inherit", func(e *Envelope) *[]string { return &e.EnvInherit }, names(equal)),
	}
}

// agentFields are handed to the agent; some of them bind the posture too.
func agentFields() []field {
	return []field{
		at("secrets", "Secrets", "secrets", func(e *Envelope) *[]string { return &e.Secrets }, names(equal)),
		at("trust", "Trust", "trust", func(e *Envelope) *string { return &e.Trust }, trustOrder),
		at("max_risk", "MaxRisk", "max_risk", func(e *Envelope) *string { return &e.MaxRisk }, risks.order()),
		at("tools.allow", "Tools.Allow", "tools.allow", func(e *Envelope) *[]string { return &e.Tools.Allow }, names(equal)),
		at("tools.deny", "Tools.Deny", "tools.deny", func(e *Envelope) *[]string { return &e.Tools.Deny }, atLeast),
		at("mode", "Mode", "mode", func(e *Envelope) *string { return &e.Mode }, turns.order()),
	}
}

// FieldNames lists every field of an envelope, in the order of the table.
func FieldNames() []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return out
}

// RequestName is how a request names a field: memory is limits.memory.
func RequestName(name string) string {
	if name == tmpfsTogether {
		return "limits." + name
	}
	for _, f := range fields {
		if f.name == name {
			return f.asked
		}
	}
	return name
}

// Subset lists every field in which child is wider than parent; none means child ⊑ parent.
func Subset(child, parent Envelope) []job.Violation {
	var bad []job.Violation
	for _, f := range fields {
		if asked, allowed, over := f.over(&child, &parent); over {
			bad = append(bad, job.Violation{Field: f.name, Asked: asked, Allowed: allowed, Why: "wider than the parent"})
		}
	}
	return bad
}

// Field is one effective value with its origin, for people.
type Field struct {
	Name, Value string
	Origin      Origin
}

// Fields lists everything that bounds a job, in a stable order. Of an envelope from before there were bounds beside the
// posture, it lists the posture.
func (e Envelope) Fields() []Field {
	var out []Field
	for _, f := range fields {
		if e.Mode == "" && f.name == "disk_bytes" {
			break
		}
		origin, ok := e.Origins[f.name]
		if !ok {
			origin = FromDefault
		}
		out = append(out, Field{f.name, f.show(&e), origin})
	}
	return out
}
