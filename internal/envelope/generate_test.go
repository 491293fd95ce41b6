package envelope_test

import (
	"slices"

	"pgregory.net/rapid"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

var (
	someNames  = []string{"alpha", "beta", "gamma", "delta"}
	somePaths  = []string{"/srv", "/srv/a", "/srv/a/b", "/srv/ab", "/data", "/"}
	someImages = []string{"tiny", "base", "base:v2", "sha256:0a"}
)

func subset(t *rapid.T, label string, of []string) []string {
	var out []string
	for _, name := range of {
		if rapid.Bool().Draw(t, label+" has "+name) {
			out = append(out, name)
		}
	}
	return out
}

func pick[T any](t *rapid.T, label string, of []T) T { return rapid.SampledFrom(of).Draw(t, label) }

// anEnvelope draws a sound envelope, as Narrow makes them.
func anEnvelope(t *rapid.T, label string) envelope.Envelope {
	e := envelope.Envelope{Profile: pick(t, label+" profile", someNames), Posture: aPosture(t, label), Bounds: someBounds(t, label)}
	e.Posture.ImageID = pick(t, label+" image id", []string{"", "sha256:0a", "sha256:0b"})
	e.Image = pick(t, label+" image", someImages)
	e.Workspace.Path = pick(t, label+" workspace", append([]string{""}, somePaths...))
	for _, p := range subset(t, label+" mounts", somePaths) {
		e.Mounts = append(e.Mounts, job.Mount{Source: p, Name: "m" + p[1:]})
	}
	return e
}

func aPosture(t *rapid.T, label string) envelope.Posture {
	p := envelope.Posture{Runtime: pick(t, label+" runtime", envelope.Runtimes()), HomeExec: rapid.Bool().Draw(t, label+" home_exec"),
		Shm: rapid.Bool().Draw(t, label+" shm"), Inodes: rapid.Int64Range(1, 9).Draw(t, label+" inodes"), DiskBytes: rapid.Int64Range(0, 9).Draw(t, label+" disk")}
	for _, name := range envelope.AmountNames() {
		set(&p, name, least[name]*rapid.Int64Range(1, 9).Draw(t, label+" "+name))
	}
	p.Memory = rapid.Int64Range(1, 9).Draw(t, label+" memory") * gib
	return p
}

// someBounds draws what a profile or a parent may allow.
func someBounds(t *rapid.T, label string) envelope.Bounds {
	b := envelope.Bounds{
		Mode: envelope.SingleTurn, Images: subset(t, label+" images", someImages), Egress: envelope.EgressNone,
		Workspace: envelope.Workspace{Mode: job.WorkspaceMode(pick(t, label+" mode", envelope.WorkspaceModes())), Git: pick(t, label+" git", []string{"ro", "rw"}),
			Live: rapid.Bool().Draw(t, label+" live")},
		Budget: budget.Limits{}, BudgetInherit: pick(t, label+" budget_inherit", []string{"share", "operator"}),
		Delegates: subset(t, label+" delegates", someNames), Depth: rapid.Int64Range(0, 3).Draw(t, label+" depth"),
		MaxDepth: rapid.Int64Range(1, 4).Draw(t, label+" max_depth"), MaxTreeJobs: rapid.Int64Range(1, 9).Draw(t, label+" max_tree_jobs"),
		MaxTreeLive: rapid.Int64Range(1, 9).Draw(t, label+" max_tree_live"), Detached: rapid.Bool().Draw(t, label+" detached"),
		RetentionMS: rapid.Int64Range(1, 9).Draw(t, label+" retention"), EnvInherit: subset(t, label+" env", someNames), Secrets: subset(t, label+" secrets", someNames),
		Trust: pick(t, label+" trust", []string{"trusted", "untrusted"}), MaxRisk: pick(t, label+" max_risk", envelope.Risks()),
		Tools: envelope.Tools{Allow: subset(t, label+" allow", append([]string{"*"}, someNames...)), Deny: subset(t, label+" deny", someNames)},
	}
	for _, d := range budget.Dims() {
		if rapid.Bool().Draw(t, label+" limits "+string(d)) {
			b.Budget[d] = rapid.Int64Range(2000, 9000).Draw(t, label+" "+string(d))
		}
	}
	return b
}

// aProfile draws a profile with default ≤ limit, as a config has them.
func aProfile(t *rapid.T, label string) envelope.Profile {
	p := envelope.Profile{Name: pick(t, label+" name", someNames), Limit: aPosture(t, label+" limit"), Allows: someBounds(t, label), Origins: map[string]envelope.Origin{}}
	p.Default = p.Limit
	for _, name := range envelope.AmountNames() {
		limit, _ := p.Limit.Amount(name)
		set(&p.Default, name, rapid.Int64Range(least[name], limit).Draw(t, label+" default "+name))
	}
	p.Default.Memory = p.Limit.Memory
	p.WorkspaceMode = job.WorkspaceMode(pick(t, label+" workspace_mode", envelope.WorkspaceModes()))
	if slices.Index(envelope.WorkspaceModes(), string(p.WorkspaceMode)) > slices.Index(envelope.WorkspaceModes(), string(p.Allows.Workspace.Mode)) {
		p.WorkspaceMode = p.Allows.Workspace.Mode
	}
	p.Allows.Depth = 0
	p.Allows.Images = append(p.Allows.Images, "tiny")
	p.Allows.Image = "tiny"
	return p
}

// aRequest draws what may or may not fit: a few fields, or many.
func aRequest(t *rapid.T, label string) envelope.Request {
	r := envelope.Request{Amounts: envelope.Ask{}, Budget: budget.Limits{}}
	one := pick(t, label+" one field in", []int{3, 40, 40, 200})
	asks := func(what string) bool { return rapid.IntRange(1, one).Draw(t, label+" asks "+what) == one }
	for _, name := range envelope.AmountNames() {
		if asks(name) {
			r.Amounts[name] = least[name] * rapid.Int64Range(0, 9).Draw(t, label+" "+name)
		}
	}
	for _, d := range budget.Dims() {
		if asks(string(d)) {
			r.Budget[d] = rapid.Int64Range(0, 9000).Draw(t, label+" "+string(d))
		}
	}
	words := map[string]struct {
		to *string
		of []string
	}{
		"image": {&r.Image, someImages}, "runtime": {&r.Runtime, []string{"runc", "runsc", "kata"}}, "path": {&r.WorkspacePath, append([]string{"srv", "/srv/../x"}, somePaths...)},
		"workspace mode": {&r.WorkspaceMode, append(envelope.WorkspaceModes(), "RW")}, "git": {&r.WorkspaceGit, []string{"ro", "rw"}}, "egress": {&r.Egress, []string{"none", "report"}},
		"trust": {&r.Trust, []string{"trusted", "untrusted", "Trusted", " trusted"}}, "max_risk": {&r.MaxRisk, append(envelope.Risks(), "Safe")}, "mode": {&r.Mode, []string{"single_turn", "chat"}},
	}
	for _, name := range slices.Sorted(mapsKeys(words)) {
		if asks(name) {
			*words[name].to = pick(t, label+" "+name, words[name].of)
		}
	}
	for _, s := range []struct {
		name string
		to   *[]string
		of   []string
	}{{"images", &r.Images, someImages}, {"delegates", &r.Delegates, someNames}, {"env", &r.EnvInherit, someNames}, {"secrets", &r.Secrets, someNames},
		{"allow", &r.ToolsAllow, append([]string{"*"}, someNames...)}, {"deny", &r.ToolsDeny, someNames}} {
		if asks(s.name) {
			*s.to = append([]string{}, subset(t, label+" "+s.name, s.of)...)
		}
	}
	for _, c := range []struct {
		name string
		to   **int64
	}{{"max_depth", &r.MaxDepth}, {"max_tree_jobs", &r.MaxTreeJobs}, {"max_tree_live", &r.MaxTreeLive}, {"retention", &r.RetentionMS}} {
		if asks(c.name) {
			*c.to = new(rapid.Int64Range(-1, 9).Draw(t, label+" "+c.name))
		}
	}
	if asks("lease") {
		r.Lease = new(rapid.Bool().Draw(t, label+" lease"))
	}
	if asks("live") {
		r.WorkspaceLive = new(rapid.Bool().Draw(t, label+" live"))
	}
	if asks("mounts") {
		r.Mounts = []job.Mount{{Source: pick(t, label+" mount", somePaths), Name: "m"}}
	}
	r.Strict = rapid.Bool().Draw(t, label+" strict")
	return r
}
