package config

import (
	"errors"
	"fmt"

	"sandboxd/internal/envelope"
)

// ProjectFile is the name of the file in the root of a workspace that narrows the jobs that run on it.
const ProjectFile = ".sandboxd.toml"

// maxProject bounds a project file in bytes.
const maxProject = 64 << 10

// fileProject is the shape of a project file. Whoever wrote the workspace wrote it: it has nothing that could give, and
// what it asks is held to the profile like a request, then holds the request.
type fileProject struct {
	Limits  fileSizes         `toml:"limits"`
	Timeout *span             `toml:"timeout"`
	Budget  fileProjectBudget `toml:"budget"`
	Trust   *string           `toml:"trust"`
	MaxRisk *string           `toml:"max_risk"`
	Tools   fileTools         `toml:"tools"`
}

type fileProjectBudget struct {
	fileBudget
	Strict bool `toml:"strict"`
}

// ParseProject reads a project file into what it asks, for Above.Project. It is strict: every unknown key, wrong type and
// amount that is none is an error that names the key. What is only too wide is refused by envelope.Narrow.
func ParseProject(text string) (envelope.Request, error) {
	if len(text) > maxProject {
		return envelope.Request{}, fmt.Errorf("%s has more bytes than a project file may have (%d)", ProjectFile, maxProject)
	}
	var f fileProject
	if err := decode(text, &f); err != nil {
		return envelope.Request{}, fmt.Errorf("%s: %w", ProjectFile, err)
	}
	r, bad := f.request()
	if len(bad) > 0 {
		return envelope.Request{}, fmt.Errorf("%s: %w", ProjectFile, errors.Join(bad...))
	}
	return r, nil
}

// request is what the file asks. What it names must say something: an empty word or a 0 is a fault, not a silence.
func (f fileProject) request() (envelope.Request, faults) {
	var b faults
	r := envelope.Request{Amounts: envelope.Ask{}, Budget: f.Budget.limits(), Strict: f.Budget.Strict}
	var p envelope.Posture
	for name := range (fileAmounts{f.Limits, f.Timeout}).apply(&p) {
		r.Amounts[name], _ = p.Amount(name)
	}
	for _, v := range r.Amounts.TooSmall() {
		b.fail(projectKey(v.Field), "%s is too small; write %s (0 never means unlimited)", v.Asked, v.Allowed)
	}
	checkBudget(&b, "", r.Budget)
	m := maker{b: &b, p: envelope.Profile{Origins: map[string]envelope.Origin{}}}
	m.word("max_risk", f.MaxRisk, &r.MaxRisk, envelope.Risks()...)
	if f.Trust != nil {
		r.Trust = envelope.TrustOf(*f.Trust)
	}
	m.names("tools.allow", f.Tools.Allow, &r.ToolsAllow)
	m.names("tools.deny", f.Tools.Deny, &r.ToolsDeny)
	return r, b
}

func projectKey(amount string) string {
	if amount == "timeout" {
		return amount
	}
	return "limits." + amount
}
