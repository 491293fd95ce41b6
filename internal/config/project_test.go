package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/config"
	"sandboxd/internal/envelope"
)

func TestAProjectFileIsReadIntoWhatItAsks(t *testing.T) {
	r, err := config.ParseProject(`
timeout = "5m"
trust = "Trusted"
max_risk = "local_write"
[limits]
cpus = 0.5
memory = "256MiB"
pids = 64
nofile = 99
tmp_bytes = "1MiB"
home_bytes = "2MiB"
out_bytes = "3MiB"
output_keep = "4MiB"
[budget]
wall = "1h"
cpu = "1m"
egress_bytes = 1
output_bytes = "1KiB"
artifact_bytes = 2
input_tokens = 3
output_tokens = 4
tool_calls = 5
cost_micro_usd = 6
strict = true
[tools]
allow = []
deny = ["web"]
`)
	if err != nil {
		t.Fatal(err)
	}
	want := envelope.Request{
		Amounts: envelope.Ask{"cpus": 500, "memory": 256 * mib, "pids": 64, "nofile": 99, "tmp_bytes": mib, "home_bytes": 2 * mib, "out_bytes": 3 * mib, "output_keep": 4 * mib, "timeout": 300_000},
		Budget: budget.Limits{budget.WallMS: 3_600_000, budget.CPUMS: 60_000, budget.EgressBytes: 1, budget.OutputBytes: 1024, budget.ArtifactBytes: 2,
			budget.InputTokens: 3, budget.OutputTokens: 4, budget.ToolCalls: 5, budget.CostMicroUSD: 6},
		Strict: true, Trust: "untrusted", MaxRisk: "local_write", ToolsAllow: []string{}, ToolsDeny: []string{"web"},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	if r, err := config.ParseProject(""); err != nil || !cmp.Equal(r, envelope.Request{Amounts: envelope.Ask{}, Budget: budget.Limits{}}) {
		t.Errorf("an empty file asks %+v, %v", r, err)
	}
}

func TestAProjectFileIsReadStrictly(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"unknown key", "memroy = 1", []string{".sandboxd.toml: memroy: unknown key"}},
		{"misspelt in a section", "[limits]\nmemroy = \"1g\"", []string{"limits.memroy: unknown key; did you mean limits.memory?"}},
		{"a profile", "profile = \"wide\"", []string{"profile: unknown key"}},
		{"a command", "command = [\"rm\"]", []string{"command: unknown key"}},
		{"an image", "image = \"x\"", []string{"image: unknown key"}},
		{"profiles", "[profiles.default]\ntrust = \"trusted\"", []string{"profiles.default: unknown key", "profiles.default.trust: unknown key"}},
		{"a daemon's key", "[limits]\nmax_depth = 5", []string{"limits.max_depth: unknown key"}},
		{"whom the budget is charged to", "[budget]\ninherit = \"operator\"", []string{"budget.inherit: unknown key"}},
		{"case twin", "trust = \"untrusted\"\nTrust = \"trusted\"", []string{"Trust: unknown key; did you mean trust?"}},
		{"twice", "trust = \"a\"\ntrust = \"b\"", []string{"line 2", "trust"}},
		{"zero", "timeout = 0\n[limits]\npids = 0\nmemory = 0", []string{"timeout: 0s is too small", "limits.pids: 0 is too small", "limits.memory: 0B is too small"}},
		{"negative", "[limits]\npids = -1\n[budget]\ntool_calls = -5", []string{"limits.pids: -1 is too small", "budget.tool_calls: -5 is too small"}},
		{"zero budget", "[budget]\ncpu = 0\negress_bytes = 0\nwall = \"10ms\"", []string{"budget.cpu: 0s is too small", "budget.egress_bytes: 0B is too small", "budget.wall: 10ms is less than a job can have (1s)"}},
		{"fraction", "[budget]\ntool_calls = 1.5", []string{"budget.tool_calls"}},
		{"no number", "[budget]\ninput_tokens = nan", []string{"budget.input_tokens"}},
		{"overflow", "[budget]\ncost_micro_usd = 9223372036854775808", []string{"9223372036854775808"}},
		{"unknown risk", "max_risk = \"Safe\"", []string{`max_risk: "Safe" is not one of safe, local_write`}},
		{"no risk", "max_risk = \"\"", []string{`max_risk: "" is not one of`}},
		{"odd tools", "[tools]\nallow = [\"a\", \"a\"]\ndeny = [\"\"]", []string{`tools.allow: "a" is named twice`, `tools.deny: "" is not a name`}},
		{"no TOML", "{", []string{"line 1"}},
		{"large", strings.Repeat("#", 70_000), []string{"more bytes than a project file may have (65536)"}},
		{"nothing but keys", manyKeys(), []string{"k0: unknown key", "k31: unknown key", "… and 6968 more unknown keys"}},
		{"deep", "a = " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000), []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := config.ParseProject(c.text)
			if err == nil || !cmp.Equal(r, envelope.Request{}) {
				t.Fatalf("%+v, %v", r, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
		})
	}
}

func manyKeys() string {
	var b strings.Builder
	for i := range 7000 {
		fmt.Fprintf(&b, "k%d=1\n", i)
	}
	return b.String()
}

// Whatever a project file says, no profile's job has more with it than without.
func FuzzProject(f *testing.F) {
	for _, text := range []string{"", "trust = \"trusted\"", "[limits]\nmemory = \"64GiB\"", "max_risk = \"blocked\"", "[tools]\nallow = [\"*\"]", "[budget]\ncpu = \"1h\"\nstrict = true", "timeout = \"100h\""} {
		f.Add(text)
	}
	c := config.Default(usual)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := config.ParseProject(text)
		if err != nil {
			return
		}
		for _, p := range c.Profiles {
			e, bad := envelope.Narrow(envelope.Above{Profile: &p, Project: &r}, envelope.Request{})
			if wide := envelope.Subset(e, p.Ceiling()); len(bad) == 0 && len(wide) > 0 {
				t.Errorf("%s: %+v", p.Name, wide)
			}
		}
	})
}
