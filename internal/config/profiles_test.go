package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/config"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// profileSets maps each key of a profile to a value and to what the profile must have become.
var profileSets = []struct {
	key, value string
	field      string // whose origin is the profile
	read       func(envelope.Profile) any
	want       any
}{
	{"profiles.x.description", `"d"`, "", func(p envelope.Profile) any { return p.Description }, "d"},
	{"profiles.x.image", `"sandboxd/tiny"`, "image", func(p envelope.Profile) any { return p.Allows.Image }, "sandboxd/tiny"},
	{"profiles.x.images", `["sandboxd/tiny:latest"]`, "images", func(p envelope.Profile) any { return []any{p.Allows.Image, p.Allows.Images} },
		[]any{"sandboxd/tiny:latest", []string{"sandboxd/tiny:latest"}}},
	{"profiles.x.workspace.mode", `"overlay"`, "workspace.mode", func(p envelope.Profile) any { return p.WorkspaceMode }, job.WorkspaceOverlay},
	{"profiles.x.workspace.max_mode", `"ro"`, "", func(p envelope.Profile) any { return p.Allows.Workspace.Mode }, job.WorkspaceRO},
	{"profiles.x.workspace.git", `"ro"`, "workspace.git", func(p envelope.Profile) any { return p.Allows.Workspace.Git }, "ro"},
	{"profiles.x.workspace.live", "false", "workspace.live", func(p envelope.Profile) any { return p.Allows.Workspace.Live }, false},
	{"profiles.x.delegates", `["tester", "judge"]`, "delegates", func(p envelope.Profile) any { return p.Allows.Delegates }, []string{"tester", "judge"}},
	{"profiles.x.max_depth", "16", "max_depth", func(p envelope.Profile) any { return p.Allows.MaxDepth }, int64(16)},
	{"profiles.x.max_tree_jobs", "1000", "max_tree_jobs", func(p envelope.Profile) any { return p.Allows.MaxTreeJobs }, int64(1000)},
	{"profiles.x.max_tree_live", "100", "max_tree_live", func(p envelope.Profile) any { return p.Allows.MaxTreeLive }, int64(100)},
	{"profiles.x.budget_inherit", `"operator"`, "budget_inherit", func(p envelope.Profile) any { return p.Allows.BudgetInherit }, "operator"},
	{"profiles.x.lease", "true", "lease", func(p envelope.Profile) any { return p.Allows.Detached }, false},
	{"profiles.x.retention", `"1h"`, "retention", func(p envelope.Profile) any { return p.Allows.RetentionMS }, int64(3_600_000)},
	{"profiles.x.env_inherit", `["LANG"]`, "env_inherit", func(p envelope.Profile) any { return p.Allows.EnvInherit }, []string{"LANG"}},
	{"profiles.x.trust", `"trusted"`, "trust", func(p envelope.Profile) any { return p.Allows.Trust }, "trusted"},
	{"profiles.x.max_risk", `"blocked"`, "max_risk", func(p envelope.Profile) any { return p.Allows.MaxRisk }, "blocked"},
	{"profiles.x.tools.allow", `["read"]`, "tools.allow", func(p envelope.Profile) any { return p.Allows.Tools.Allow }, []string{"read"}},
	{"profiles.x.tools.deny", `["*"]`, "tools.deny", func(p envelope.Profile) any { return p.Allows.Tools.Deny }, []string{"*"}},
	{"profiles.x.defaults.cpus", "0.5", "cpus", defaultOf("cpus"), int64(500)},
	{"profiles.x.defaults.memory", `"64MiB"`, "memory", defaultOf("memory"), int64(64 * mib)},
	{"profiles.x.defaults.pids", "9", "pids", defaultOf("pids"), int64(9)},
	{"profiles.x.defaults.nofile", "99", "nofile", defaultOf("nofile"), int64(99)},
	{"profiles.x.defaults.tmp_bytes", `"1MiB"`, "tmp_bytes", defaultOf("tmp_bytes"), int64(mib)},
	{"profiles.x.defaults.home_bytes", `"1MiB"`, "home_bytes", defaultOf("home_bytes"), int64(mib)},
	{"profiles.x.defaults.out_bytes", `"1MiB"`, "out_bytes", defaultOf("out_bytes"), int64(mib)},
	{"profiles.x.defaults.output_keep", `"1MiB"`, "output_keep", defaultOf("output_keep"), int64(mib)},
	{"profiles.x.defaults.timeout", `"1m"`, "timeout", defaultOf("timeout"), int64(60_000)},
	{"profiles.x.defaults.home_exec", "false", "home_exec", func(p envelope.Profile) any { return []bool{p.Default.HomeExec, p.Ceiling().Posture.HomeExec} }, []bool{false, false}},
	{"profiles.x.limits.cpus", "0.5", "", limitOf("cpus"), [2]int64{500, 500}},
	{"profiles.x.limits.memory", `"64MiB"`, "", limitOf("memory"), [2]int64{64 * mib, 64 * mib}},
	{"profiles.x.limits.pids", "9", "", limitOf("pids"), [2]int64{9, 9}},
	{"profiles.x.limits.nofile", "99", "", limitOf("nofile"), [2]int64{99, 99}},
	{"profiles.x.limits.tmp_bytes", `"1MiB"`, "", limitOf("tmp_bytes"), [2]int64{mib, mib}},
	{"profiles.x.limits.home_bytes", `"1MiB"`, "", limitOf("home_bytes"), [2]int64{mib, mib}},
	{"profiles.x.limits.out_bytes", `"1MiB"`, "", limitOf("out_bytes"), [2]int64{mib, mib}},
	{"profiles.x.limits.output_keep", `"1MiB"`, "", limitOf("output_keep"), [2]int64{mib, mib}},
	{"profiles.x.limits.timeout", `"1m"`, "", limitOf("timeout"), [2]int64{60_000, 60_000}},
	{"profiles.x.budget.wall", `"2h"`, "budget.wall_ms", budgetOf("wall_ms"), int64(7_200_000)},
	{"profiles.x.budget.cpu", "90", "budget.cpu_ms", budgetOf("cpu_ms"), int64(90_000)},
	{"profiles.x.budget.egress_bytes", `"1GiB"`, "budget.egress_bytes", budgetOf("egress_bytes"), int64(gib)},
	{"profiles.x.budget.output_bytes", "1", "budget.output_bytes", budgetOf("output_bytes"), int64(1)},
	{"profiles.x.budget.artifact_bytes", `"1k"`, "budget.artifact_bytes", budgetOf("artifact_bytes"), int64(1024)},
	{"profiles.x.budget.input_tokens", "5", "budget.input_tokens", budgetOf("input_tokens"), int64(5)},
	{"profiles.x.budget.output_tokens", "6", "budget.output_tokens", budgetOf("output_tokens"), int64(6)},
	{"profiles.x.budget.tool_calls", "7", "budget.tool_calls", budgetOf("tool_calls"), int64(7)},
	{"profiles.x.budget.cost_micro_usd", "8", "budget.cost_micro_usd", budgetOf("cost_micro_usd"), int64(8)},
}

func defaultOf(name string) func(envelope.Profile) any {
	return func(p envelope.Profile) any { v, _ := p.Default.Amount(name); return v }
}

// limitOf has the limit and the default, which shrinks to it.
func limitOf(name string) func(envelope.Profile) any {
	return func(p envelope.Profile) any {
		l, _ := p.Limit.Amount(name)
		v, _ := p.Default.Amount(name)
		return [2]int64{l, v}
	}
}

func budgetOf(d budget.Dim) func(envelope.Profile) any {
	return func(p envelope.Profile) any { return p.Allows.Budget[d] }
}

func profile(t *testing.T, c config.Config, name string) envelope.Profile {
	t.Helper()
	i := slices.IndexFunc(c.Profiles, func(p envelope.Profile) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no profile %s", name)
	}
	return c.Profiles[i]
}

func TestEveryKeyOfAProfileIsReadIntoItsField(t *testing.T) {
	plain, err := parse("[profiles.x]\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range profileSets {
		c, err := parse(line(s.key, s.value))
		if err != nil {
			t.Errorf("%s = %s: %v", s.key, s.value, err)
			continue
		}
		p := profile(t, c, "x")
		if diff := cmp.Diff(s.want, s.read(p)); diff != "" {
			t.Errorf("%s = %s: %s", s.key, s.value, diff)
		}
		if s.field != "" && p.Origins[s.field] != envelope.FromProfile("x") {
			t.Errorf("%s comes from %q", s.key, p.Origins[s.field])
		}
		for _, other := range profileSets {
			amount := strings.Contains(s.key, ".limits.") || strings.Contains(s.key, ".defaults.")
			if other.key == s.key || strings.HasPrefix(s.key, "profiles.x.image") || amount && strings.HasSuffix(other.key, s.key[strings.LastIndexByte(s.key, '.'):]) {
				continue // a default shrinks to its limit
			}
			if diff := cmp.Diff(other.read(profile(t, plain, "x")), other.read(p)); diff != "" {
				t.Errorf("%s changed %s: %s", s.key, other.key, diff)
			}
		}
		for _, untouched := range plain.Profiles {
			if untouched.Name != "x" && !cmp.Equal(untouched, profile(t, c, untouched.Name)) {
				t.Errorf("%s changed profile %s", s.key, untouched.Name)
			}
		}
	}
}

func TestAProfileThatSaysNothingIsNarrow(t *testing.T) {
	c, err := parse("[defaults]\nmemory = \"256MiB\"\n[limits]\npids = 100\n[profiles.x]\n")
	if err != nil {
		t.Fatal(err)
	}
	p := profile(t, c, "x")
	want := envelope.Bounds{
		Mode: "single_turn", Image: "sandboxd/base", Images: []string{"sandboxd/base", "sandboxd/tiny"}, Workspace: envelope.Workspace{Mode: "overlay", Git: "ro"}, Egress: "none",
		Budget: budget.Limits{}, BudgetInherit: "share", MaxDepth: 2, MaxTreeJobs: 64, MaxTreeLive: 8, Detached: true, RetentionMS: (24 * time.Hour).Milliseconds(),
		Trust: "untrusted", MaxRisk: "code_execution", Tools: envelope.Tools{Allow: []string{"*"}},
	}
	if diff := cmp.Diff(want, p.Allows); diff != "" {
		t.Error(diff)
	}
	if p.WorkspaceMode != job.WorkspaceRO || p.Default.Memory != 256*mib || p.Limit.Pids != 100 || p.Origins["memory"] != envelope.FromConfig || p.Origins["pids"] != envelope.Clamped {
		t.Errorf("%+v", p)
	}
}

// A section replaces a starter whole, and default keeps its place.
func TestAFileReplacesAStarterWhole(t *testing.T) {
	c, err := parse("[profiles.builder]\ntrust = \"untrusted\"\n[profiles.default]\nmax_risk = \"safe\"\ndescription = \"mine\"\n")
	if err != nil {
		t.Fatal(err)
	}
	b := profile(t, c, "builder")
	if b.Description != "" || len(b.Allows.Delegates) > 0 || b.Default.Memory != gib || b.WorkspaceMode != job.WorkspaceRO {
		t.Errorf("%+v", b)
	}
	d := c.Profiles[0]
	if d.Name != "default" || d.Allows.MaxRisk != "safe" || d.Description != "mine" || d.Allows.Workspace.Mode != job.WorkspaceRO {
		t.Errorf("%+v", d)
	}
	if len(c.Profiles) != len(config.Default(usual).Profiles) {
		t.Errorf("%d profiles", len(c.Profiles))
	}
}

// soundProfiles holds what every configuration's profiles are: within [limits], and good for a job.
func soundProfiles(t interface{ Errorf(string, ...any) }, c config.Config) {
	for _, p := range c.Profiles {
		if bad := append(p.Default.Check(), p.Default.Within(p.Limit)...); len(bad) > 0 {
			t.Errorf("%s: %+v", p.Name, bad)
		}
		for _, v := range envelope.Subset(p.Ceiling(), c.Ceiling.Ceiling()) {
			t.Errorf("%s is wider than [limits]: %+v", p.Name, v)
		}
		e, bad := envelope.Narrow(envelope.Above{Profile: &p, Limits: &c.Ceiling}, envelope.Request{WorkspacePath: "/srv/x"})
		if len(bad) > 0 {
			t.Errorf("%s: a request that asks nothing is refused: %+v", p.Name, bad)
			continue
		}
		if e.Workspace.Mode != p.WorkspaceMode || e.Origins["workspace.mode"] == envelope.Clamped {
			t.Errorf("%s: risk or trust cuts the workspace to %s", p.Name, e.Workspace.Mode)
		}
		for field, origin := range e.Origins {
			if origin == envelope.Clamped && !slices.Contains(envelope.AmountNames(), field) && !strings.HasPrefix(field, "budget.") {
				t.Errorf("%s: %s is clamped", p.Name, field)
			}
		}
	}
}

func names(c config.Config) []string {
	var out []string
	for _, p := range c.Profiles {
		out = append(out, p.Name)
	}
	return out
}

func TestTheStarterSet(t *testing.T) {
	c := config.Default(usual)
	want := []string{"default", "builder", "dependency-checker", "doc-writer", "judge", "orchestrator", "refactorer", "researcher", "reviewer", "security-reviewer", "summariser", "tester", "untrusted"}
	if diff := cmp.Diff(want, names(c)); diff != "" {
		t.Fatal(diff)
	}
	text := config.StarterProfiles()
	for _, name := range want[1:] {
		p := profile(t, c, name)
		at := strings.Index(text, "\n[profiles."+name+"]\n")
		if at < 0 || !strings.HasPrefix(text[strings.LastIndexByte(text[:at], '\n')+1:], "# ") {
			t.Errorf("%s has no comment above it", name)
		}
		if p.Description == "" || len(p.Origins) == 0 {
			t.Errorf("%+v", p)
		}
		for field, origin := range p.Origins {
			if origin != envelope.FromProfile(name) {
				t.Errorf("%s: %s comes from %s on a usual host", name, field, origin)
			}
		}
		if p.Allows.Workspace.Mode == job.WorkspaceRW || p.Allows.Egress != "none" || len(p.Allows.Secrets) > 0 {
			t.Errorf("%s is wide: %+v", name, p.Allows)
		}
	}
}

// Copied into a config, the curated set is what it was: people may start from it.
func TestTheStarterSetIsAConfig(t *testing.T) {
	c, err := parse(config.StarterProfiles())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(usual), c); diff != "" {
		t.Error(diff)
	}
}

// Everyone that a starter names as its delegate can be its child, down to the end of the roster, on large and small hosts.
func TestStartersCanDelegateAsTheySay(t *testing.T) {
	pairs := map[string]bool{}
	for _, h := range []config.Host{usual, {Cores: 1, Memory: 256 * mib}, {Cores: 64, Memory: 512 * gib}} {
		c := config.Default(h)
		var down func(parent envelope.Envelope)
		down = func(parent envelope.Envelope) {
			for _, name := range parent.Delegates {
				p := profile(t, c, name)
				child, bad := envelope.Narrow(envelope.Above{Parent: &parent, LeftMS: parent.Posture.TimeoutMS, Profile: &p, Limits: &c.Ceiling}, envelope.Request{})
				if len(bad) > 0 {
					t.Errorf("%+v: %s below %s: %+v", h, name, parent.Profile, bad)
					continue
				}
				if wide := envelope.Subset(child, parent); len(wide) > 0 {
					t.Errorf("%s below %s: %+v", name, parent.Profile, wide)
				}
				pairs[parent.Profile+" → "+name] = true
				if child.Depth < child.MaxDepth {
					down(child)
				}
			}
		}
		for _, p := range c.Profiles {
			root, bad := envelope.Narrow(envelope.Above{Profile: &p}, envelope.Request{WorkspacePath: "/srv"})
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			down(root)
		}
	}
	for _, want := range []string{"orchestrator → builder", "builder → tester", "orchestrator → untrusted", "researcher → summariser"} {
		if !pairs[want] {
			t.Errorf("%s was not tried; %v", want, slices.Sorted(maps.Keys(pairs)))
		}
	}
}
