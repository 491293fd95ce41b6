package config

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// Bounds of what [limits] and profiles may say of trees.
const (
	maxDepth    = 16
	maxTreeJobs = 10000
	maxTreeLive = 1000
)

var profileName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// narrowest is what a profile allows beside its posture where it says nothing.
func narrowest(c *Config) envelope.Bounds {
	return envelope.Bounds{
		Mode: envelope.SingleTurn, Image: c.Images.Default, Images: c.Images.Allow,
		Workspace: envelope.Workspace{Mode: job.WorkspaceOverlay, Git: envelope.GitRO}, Egress: envelope.EgressNone,
		Budget: budget.Limits{}, BudgetInherit: envelope.BudgetShare, MaxDepth: 2, MaxTreeJobs: 64, MaxTreeLive: 8,
		Detached: true, RetentionMS: c.Jobs.Retention.Milliseconds(), Trust: envelope.Untrusted, MaxRisk: envelope.RiskCode,
		Tools: envelope.Tools{Allow: []string{"*"}},
	}
}

// ceiling is [limits] as the widest profile of all: what it says nothing of, every profile may allow.
func (f fileLimits) ceiling(c *Config, limit envelope.Posture) envelope.Profile {
	all := narrowest(c)
	all.Workspace = envelope.Workspace{Mode: job.WorkspaceRW, Git: envelope.GitRW, Live: true}
	all.Budget, all.BudgetInherit = f.Budget.limits(), envelope.BudgetOperator
	all.MaxDepth, all.MaxTreeJobs, all.MaxTreeLive = maxDepth, maxTreeJobs, maxTreeLive
	for _, v := range f.counts(&all) {
		if v.from != nil && *v.from >= 1 && *v.from <= v.most { // check tells of the others
			*v.to = *v.from
		}
	}
	all.Delegates, all.EnvInherit, all.Secrets = []string{"*"}, []string{"*"}, []string{"*"}
	all.Trust, all.MaxRisk = envelope.Trusted, envelope.Risks()[len(envelope.Risks())-1]
	return envelope.Profile{Name: "limits", Default: limit, Limit: limit, Allows: all, WorkspaceMode: job.WorkspaceRW}
}

// applyProfiles makes the profiles: the one named default, the starter set, and those of the file, which replace a
// starter of the same name.
func (f file) applyProfiles(c *Config) faults {
	var b faults
	base := f.base(c)
	c.Ceiling = f.Limits.ceiling(c, base.Limit)
	c.checkBase(&b, base)
	f.Limits.check(&b)
	given := maps.Clone(starters())
	for name, s := range f.Profiles {
		given[name] = starter{s, false}
	}
	if _, ok := given[DefaultProfile]; !ok {
		given[DefaultProfile] = starter{}
	}
	c.Profiles = nil
	for _, name := range slices.Sorted(maps.Keys(given)) {
		m := maker{c: c, b: &b, key: "profiles." + name, from: envelope.FromProfile(name), starter: given[name].curated, p: base}
		m.p.Name, m.p.Origins = name, maps.Clone(base.Origins)
		if !profileName.MatchString(name) {
			b.fail(m.key, "%.64q is not a profile's name; use 1 to 63 of a-z 0-9 _ . - and begin with a letter or digit", name)
		}
		if name != DefaultProfile {
			m.p.Description = ""
		}
		c.Profiles = append(c.Profiles, m.make(given[name].fileProfile))
	}
	byDefault := slices.IndexFunc(c.Profiles, func(p envelope.Profile) bool { return p.Name == DefaultProfile })
	first := c.Profiles[byDefault]
	c.Profiles = append([]envelope.Profile{first}, slices.Delete(c.Profiles, byDefault, byDefault+1)...)
	checkRosters(&b, c.Profiles)
	return b
}

// treeCount is one number that [limits] says of trees.
type treeCount struct {
	key      string
	from, to *int64
	most     int64
}

func (f fileLimits) counts(to *envelope.Bounds) []treeCount {
	return []treeCount{
		{"max_depth", f.MaxDepth, &to.MaxDepth, maxDepth},
		{"max_tree_jobs", f.MaxTreeJobs, &to.MaxTreeJobs, maxTreeJobs},
		{"max_tree_live", f.MaxTreeLive, &to.MaxTreeLive, maxTreeLive},
	}
}

// check holds what [limits] says of trees and budgets to its bounds.
func (f fileLimits) check(b *faults) {
	for _, v := range f.counts(&envelope.Bounds{}) {
		if v.from != nil && (*v.from < 1 || *v.from > v.most) {
			b.fail("limits."+v.key, "%d is out of range; write 1 to %d (0 never means unlimited)", *v.from, v.most)
		}
	}
	checkBudget(b, "limits", f.Budget.limits())
}

func checkBudget(b *faults, key string, l budget.Limits) {
	for _, d := range budget.Dims() {
		if n, limited := l[d]; limited && n < 1 {
			b.fail(under(key, budgetKey(d)), "%s is too small; write at least %s (0 never means unlimited), or leave the key out for no limit of its own", d.Show(n), d.Show(1))
		}
	}
	if n, limited := l[budget.WallMS]; limited && n > 0 && n < envelope.MinTimeoutMS {
		b.fail(under(key, budgetKey(budget.WallMS)), "%s is less than a job can have (%s)", budget.WallMS.Show(n), time.Duration(envelope.MinTimeoutMS)*time.Millisecond)
	}
}
