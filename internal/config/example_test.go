package config_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/config"
	"sandboxd/internal/envelope"
)

func example(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../config.toml.example")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// plain forgets where values come from: the example sets what is the default anyway.
func plain(c config.Config) config.Config {
	p := c.Profiles[0]
	p.Origins = nil
	c.Profiles = []envelope.Profile{p}
	return c
}

// Copied as it is, the example changes nothing, on whatever host.
func TestExampleIsTheDefault(t *testing.T) {
	for _, h := range []config.Host{usual, {Cores: 1, Memory: 256 * mib}, {Cores: 2, Memory: 2 * gib}, {Cores: 256, Memory: 4096 * gib}} {
		c := config.Default(h)
		if err := config.Parse(example(t), &c); err != nil {
			t.Errorf("%+v: %v", h, err)
		}
		if diff := cmp.Diff(plain(config.Default(h)), plain(c)); diff != "" {
			t.Errorf("%+v: %s", h, diff)
		}
	}
}

var commented = regexp.MustCompile(`(?m)^#([a-z_]+ = |\[)`)

// The values in comments are those of the host the example speaks of, but for the keys whose default cannot be written.
func TestExamplesCommentedValuesAreThoseOfTheHostItNames(t *testing.T) {
	if !strings.Contains(example(t), "4 cores and 16 GiB") || usual != (config.Host{Cores: 4, Memory: 16 * gib}) {
		t.Fatal("the example speaks of another host than the test")
	}
	c := config.Default(usual)
	if err := config.Parse(commented.ReplaceAllString(example(t), "$1"), &c); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Workspace.Roots, []string{"/srv/projects", "/home"}) {
		t.Errorf("roots %v", c.Workspace.Roots)
	}
	c.Workspace.Roots = nil
	for _, d := range budget.Dims() {
		if c.Profiles[0].Allows.Budget[d] < 1 || c.Profiles[0].Allows.Budget[d] != c.Ceiling.Allows.Budget[d] {
			t.Errorf("%s is bounded by %d", d, c.Profiles[0].Allows.Budget[d])
		}
	}
	c.Profiles[0].Allows.Budget, c.Ceiling.Allows.Budget = budget.Limits{}, budget.Limits{}
	exampleProfile(t, c)
	if diff := cmp.Diff(plain(config.Default(usual)), plain(c)); diff != "" {
		t.Error(diff)
	}
}

// exampleProfile is the profile that says nothing, but for what the example marks as an example.
func exampleProfile(t *testing.T, c config.Config) {
	nothing, err := parse("[profiles.example]\n")
	if err != nil {
		t.Fatal(err)
	}
	want, got := profile(t, nothing, "example"), profile(t, c, "example")
	want.Description = "what it is for"
	want.Allows.Delegates, want.Allows.EnvInherit, want.Allows.Tools.Deny = []string{"tester", "reviewer"}, []string{"LANG"}, []string{"web_search"}
	want.Allows.Budget, want.Origins = got.Allows.Budget, got.Origins
	if diff := cmp.Diff(want, got); diff != "" || len(got.Allows.Budget) != len(budget.Dims()) {
		t.Error(diff)
	}
}

func TestExampleShowsEveryKeyOnce(t *testing.T) {
	shown := map[string]int{"profiles": 1} // by its sections
	section := ""
	for line := range strings.Lines(example(t)) {
		line = strings.TrimSpace(line)
		switch name, _, isKey := strings.Cut(strings.TrimPrefix(line, "#"), " = "); {
		case strings.HasPrefix(line, "["), strings.HasPrefix(line, "#["):
			section = strings.Replace(strings.Trim(line, "#[]"), "profiles.example", "profiles.NAME", 1)
			shown[section]++
		case isKey && !strings.Contains(name, " "):
			shown[section+"."+name]++
		}
	}
	for _, k := range config.Keys() {
		if shown[k] != 1 {
			t.Errorf("%s is shown %d times", k, shown[k])
		}
		delete(shown, k)
	}
	for k := range shown {
		t.Errorf("%s is shown and is no key", k)
	}
}

func TestExampleIsReadable(t *testing.T) {
	for i, line := range strings.Split(example(t), "\n") {
		if len([]rune(line)) > 125 || strings.Contains(line, "\t") || strings.TrimRight(line, " ") != line {
			t.Errorf("line %d: %q", i+1, line)
		}
	}
}
