package config

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// images writes what may run: all of images.allow, or fewer.
func (m *maker) images(s fileProfile) {
	a := &m.p.Allows
	listed := func(set []string, name string) bool {
		return slices.ContainsFunc(set, func(have string) bool { return envelope.SameImage(have, name) })
	}
	if s.Images != nil {
		m.set("images")
		a.Images = *s.Images
		if len(a.Images) == 0 {
			m.fail("images", "empty: no job could run; name some of images.allow, or leave the key out for all of them")
		}
		for _, name := range a.Images {
			if !listed(m.c.Images.Allow, name) {
				m.fail("images", "%.128q is not in images.allow (%s)", name, strings.Join(m.c.Images.Allow, ", "))
			}
		}
		if len(a.Images) > 0 && !listed(a.Images, a.Image) {
			a.Image = a.Images[0]
			m.set("image")
		}
	}
	if s.Image != nil {
		m.set("image")
		if a.Image = *s.Image; !listed(a.Images, a.Image) {
			m.fail("image", "%.128q is not among the images of this profile (%s)", a.Image, strings.Join(a.Images, ", "))
		}
	}
}

// words writes those of closed lists. A config is held to the exact words, of trust too.
func (m *maker) words(s fileProfile) {
	a := &m.p.Allows
	m.word("trust", s.Trust, &a.Trust, envelope.Trusted, envelope.Untrusted)
	m.word("max_risk", s.MaxRisk, &a.MaxRisk, envelope.Risks()...)
	m.word("budget_inherit", s.BudgetInherit, &a.BudgetInherit, envelope.BudgetShare, envelope.BudgetOperator)
}

func (m *maker) word(field string, from, to *string, of ...string) {
	if from == nil {
		return
	}
	m.b.oneOf(under(m.key, field), *from, of...)
	*to = *from
	m.set(field)
}

// workspace writes how one may be given. What risk or trust would cut is a fault where the section says it.
func (m *maker) workspace(s fileWorkspaceRule) {
	w := &m.p.Allows.Workspace
	modes := envelope.WorkspaceModes()
	mode, most := string(m.p.WorkspaceMode), string(w.Mode)
	m.word("workspace.mode", s.Mode, &mode, modes...)
	m.word("workspace.git", s.Git, &w.Git, envelope.GitRO, envelope.GitRW)
	if s.MaxMode != nil {
		m.b.oneOf(m.key+".workspace.max_mode", *s.MaxMode, modes...)
		most = *s.MaxMode
	}
	if s.Live != nil {
		w.Live = *s.Live
		m.set("workspace.live")
	}
	rank := func(word string) int { return slices.Index(modes, word) }
	allowed, why := m.mostMode()
	if rank(most) > rank(allowed) {
		if s.MaxMode != nil {
			m.fail("workspace.max_mode", "%q goes with %s at most (%s)", most, allowed, why)
		}
		most = allowed
	}
	if rank(mode) > rank(most) {
		m.fail("workspace.mode", "%q is more than workspace.max_mode (%s)", mode, most)
	}
	if w.Git == envelope.GitRW && most != string(job.WorkspaceRW) {
		m.fail("workspace.git", "only in a rw workspace may .git be written; set workspace.max_mode = \"rw\"")
	}
	if w.Live && m.p.Allows.Trust != envelope.Trusted {
		m.fail("workspace.live", "an untrusted job gets no live workspace; set trust = \"trusted\"")
	}
	m.p.WorkspaceMode, w.Mode = job.WorkspaceMode(mode), job.WorkspaceMode(most)
}

// mostMode is the widest mode that the profile's risk and trust leave.
func (m *maker) mostMode() (mode, why string) {
	switch {
	case m.p.Allows.Below(envelope.RiskLocalWrite):
		return string(job.WorkspaceRO), "max_risk is below " + envelope.RiskLocalWrite
	case m.p.Allows.Trust != envelope.Trusted:
		return string(job.WorkspaceOverlay), "trust is not " + envelope.Trusted
	}
	return string(job.WorkspaceRW), ""
}

const maxNames = 256

// names reads a list of names, each once.
func (m *maker) names(field string, from *[]string, to *[]string) {
	if from == nil {
		return
	}
	if len(*from) > maxNames {
		m.fail(field, "%d names, at most %d are allowed", len(*from), maxNames)
	}
	for i, name := range *from {
		switch {
		case name == "" || len(name) > 255 || !utf8.ValidString(name) || strings.IndexFunc(name, unicode.IsControl) >= 0 || strings.TrimSpace(name) != name:
			m.fail(field, "%.64q is not a name", name)
		case slices.Contains((*from)[:i], name):
			m.fail(field, "%.64q is named twice", name)
		case name == "*" && !strings.HasPrefix(field, "tools."):
			m.fail(field, "\"*\" is no name here; name each one")
		case field == "env_inherit" && (strings.Contains(name, "=") || strings.HasPrefix(strings.ToUpper(name), "SANDBOXD_")):
			m.fail(field, "%.64q is not the name of a variable that could be inherited", name)
		}
	}
	*to = *from
	m.set(field)
}
