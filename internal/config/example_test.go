package config_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

var commented = regexp.MustCompile(`(?m)^#([a-z_]+ = )`)

// The values in comments are those of the host the example speaks of, but for the one key whose default cannot be written.
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
	if diff := cmp.Diff(plain(config.Default(usual)), plain(c)); diff != "" {
		t.Error(diff)
	}
}

func TestExampleShowsEveryKeyOnce(t *testing.T) {
	shown := map[string]int{}
	section := ""
	for line := range strings.Lines(example(t)) {
		line = strings.TrimSpace(line)
		switch name, _, isKey := strings.Cut(strings.TrimPrefix(line, "#"), " = "); {
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
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
