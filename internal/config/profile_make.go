package config

import (
	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// maker builds one profile from its section. What a curated starter says gives way to the host and to [limits]; what an
// operator writes stands, or is a fault.
type maker struct {
	c       *Config
	b       *faults
	key     string // profiles.NAME
	from    envelope.Origin
	starter bool

	p envelope.Profile
}

func (m *maker) fail(key, format string, args ...any) { m.b.fail(under(m.key, key), format, args...) }

// under is a key in a section; a project file has its keys in none.
func under(section, key string) string {
	if section == "" {
		return key
	}
	return section + "." + key
}

func (m *maker) make(s fileProfile) envelope.Profile {
	put(&m.p.Description, s.Description)
	m.amounts(s)
	m.p.Allows = narrowest(m.c)
	m.p.WorkspaceMode = job.WorkspaceRO
	m.images(s)
	m.words(s)
	m.workspace(s.Workspace)
	m.tree(s)
	m.budget(s.Budget)
	m.names("env_inherit", s.EnvInherit, &m.p.Allows.EnvInherit)
	m.names("tools.allow", s.Tools.Allow, &m.p.Allows.Tools.Allow)
	m.names("tools.deny", s.Tools.Deny, &m.p.Allows.Tools.Deny)
	if s.Lease != nil {
		m.p.Allows.Detached = !*s.Lease
		m.set("lease")
	}
	if s.Retention != nil {
		m.count("retention", new(int64(*s.Retention)/1e6), &m.p.Allows.RetentionMS, m.c.Jobs.Retention.Milliseconds(), func(n int64) string { return showSpan(n * 1e6) })
	}
	return m.p
}

// set notes that the section says a field.
func (m *maker) set(field string) { m.p.Origins[field] = m.from }

// amounts writes the defaults and limits of the posture.
func (m *maker) amounts(s fileProfile) {
	above := m.p.Limit
	limits := s.Limits.apply(&m.p.Limit)
	defaults := s.Defaults.apply(&m.p.Default)
	for name := range defaults {
		m.set(name)
	}
	if s.Defaults.HomeExec != nil {
		m.p.Default.HomeExec = *s.Defaults.HomeExec
		m.set("home_exec")
	}
	for _, v := range m.p.Limit.Check() {
		if limits[v.Field] {
			m.fail("limits."+v.Field, "%s is too small; write %s (0 never means unlimited)", v.Asked, v.Allowed)
		}
	}
	m.p.Limit.ShrinkTo(above, func(name string) bool { return limits[name] && !m.starter })
	for _, v := range m.p.Limit.Within(above) {
		m.fail("limits."+v.Field, "%s is more than [limits] allows (%s)", v.Asked, v.Allowed)
	}
	stands := func(name string) bool { return defaults[name] && !m.starter }
	for _, name := range m.p.Default.ShrinkTo(m.c.Capacity.share(m.p.Limit), stands) {
		m.p.Origins[name] = envelope.Clamped
	}
	if !m.starter {
		m.checkDefaults(defaults)
	}
}

func (m *maker) checkDefaults(set map[string]bool) {
	for _, v := range m.p.Default.Check() {
		if set[v.Field] {
			m.fail("defaults."+v.Field, "%s is too small; write %s (0 never means unlimited)", v.Asked, v.Allowed)
		}
	}
	for _, v := range m.p.Default.Within(m.p.Limit) {
		if set[v.Field] {
			m.fail("defaults."+v.Field, "%s is more than its limit allows (%s)", v.Asked, v.Allowed)
		}
	}
	within := m.p.Default
	within.ShrinkTo(m.p.Limit, func(string) bool { return false })
	for _, v := range within.Within(m.c.Capacity.share(within)) {
		if set[v.Field] {
			m.fail("defaults."+v.Field, "%s is more than [capacity] leaves one job (%s)", v.Asked, v.Allowed)
		}
	}
}

// tree writes what bounds delegation.
func (m *maker) tree(s fileProfile) {
	a, top := &m.p.Allows, m.c.Ceiling.Allows
	a.MaxDepth, a.MaxTreeJobs, a.MaxTreeLive = min(a.MaxDepth, top.MaxDepth), min(a.MaxTreeJobs, top.MaxTreeJobs), min(a.MaxTreeLive, top.MaxTreeLive)
	m.names("delegates", s.Delegates, &a.Delegates)
	m.count("max_depth", s.MaxDepth, &a.MaxDepth, top.MaxDepth, showCount)
	m.count("max_tree_jobs", s.MaxTreeJobs, &a.MaxTreeJobs, top.MaxTreeJobs, showCount)
	m.count("max_tree_live", s.MaxTreeLive, &a.MaxTreeLive, top.MaxTreeLive, showCount)
}

// count reads a number from 1 to most; a starter's gives way to most.
func (m *maker) count(field string, from, to *int64, most int64, show func(int64) string) {
	if from == nil {
		return
	}
	n := *from
	if m.starter {
		n = min(n, most)
	}
	if n < 1 || n > most {
		m.fail(field, "%s is out of range; write %s to %s (0 never means unlimited)", show(n), show(1), show(most))
		return
	}
	*to = n
	m.set(field)
}

// budget writes the limits of the dimensions; those of [limits] bind every profile.
func (m *maker) budget(f fileBudget) {
	own, top := f.limits(), m.c.Ceiling.Allows.Budget
	checkBudget(m.b, m.key, own)
	for _, d := range budget.Dims() {
		n, limited := own[d]
		if !limited {
			continue
		}
		m.set(d.Field())
		if most, bound := top[d]; bound && n > most && !m.starter {
			m.fail(budgetKey(d), "%s is more than [limits] allows (at most %s)", d.Show(n), d.Show(most))
		}
	}
	m.p.Allows.Budget = own.Meet(top)
}
