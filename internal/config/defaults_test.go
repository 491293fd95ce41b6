package config_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sandboxd/internal/config"
	"sandboxd/internal/envelope"
)

func TestDefaultsAreSoundOnEveryHost(t *testing.T) {
	hosts := []config.Host{{}, {Cores: 1, Memory: 64 * mib}, {Cores: 1, Memory: 128 * mib}, {Cores: 1, Memory: 512 * mib}, {Cores: 2, Memory: 2 * gib},
		{Cores: 64, Memory: 2 * gib}, {Cores: 1, Memory: 1024 * gib}, {Cores: 256, Memory: 4096 * gib}, {Cores: 4096, Memory: 65536 * gib}, {Cores: 1 << 20, Memory: 1 << 50}}
	for _, h := range hosts {
		t.Run(fmt.Sprintf("%d cores, %s", h.Cores, envelope.ShowBytes(h.Memory)), func(t *testing.T) { soundDefault(t, h) })
	}
	rapid.Check(t, func(t *rapid.T) {
		soundDefault(t, config.Host{Cores: rapid.IntRange(0, 10_000).Draw(t, "cores"), Memory: rapid.Int64Range(0, 1<<48).Draw(t, "memory")})
	})
}

func soundDefault(t interface{ Errorf(string, ...any) }, h config.Host) {
	c := config.Default(h)
	// An empty file is held to the same bounds as a full one.
	if err := config.Parse("", &c); err != nil {
		t.Errorf("%+v: %v", h, err)
		return
	}
	if diff := cmp.Diff(config.Default(h), c); diff != "" {
		t.Errorf("%+v: an empty file changes the defaults: %s", h, diff)
	}
	p := c.Profiles[0]
	if p.Name != config.DefaultProfile || len(p.Origins) > 0 {
		t.Errorf("%+v: profile %s of %d, origins %v", h, p.Name, len(c.Profiles), p.Origins)
	}
	soundProfiles(t, c)
	e, bad := envelope.Root(p, nil)
	if len(bad) > 0 {
		t.Errorf("%+v: a request that asks nothing is refused: %+v", h, bad)
	}
	if e.Posture.MilliCPUs > c.Capacity.MilliCPUs || e.Posture.Memory+envelope.InitMemory > c.Capacity.Memory {
		t.Errorf("%+v: a plain job (%+v) does not fit beside nothing (%+v)", h, e.Posture, c.Capacity)
	}
	if c.Capacity.MaxRunningPerUser > c.Capacity.MaxRunning || c.Capacity.MaxQueuedPerUser > c.Capacity.MaxQueued || c.Capacity.MaxQueued != 10_000 {
		t.Errorf("%+v: %+v", h, c.Capacity)
	}
	if h.Memory > gib && c.Capacity.Memory >= h.Memory {
		t.Errorf("%+v: jobs may take all of the host's memory", h)
	}
	if over := int64(c.Capacity.MaxRunning); over > 1 && over*gib > c.Capacity.Memory {
		t.Errorf("%+v: %d plain jobs do not fit into %s", h, over, envelope.ShowBytes(c.Capacity.Memory))
	}
}

func TestWhatTheFileDoesNotSetShrinksToWhatItSets(t *testing.T) {
	type want struct {
		value  int64
		origin envelope.Origin
	}
	for _, c := range []struct {
		name, text string
		defaults   map[string]want
		limits     map[string]int64
	}{
		{"limits below the defaults", "[limits]\nmemory = \"256MiB\"\npids = 64\ntimeout = \"1m\"\ncpus = 0.5\noutput_keep = \"1MiB\"",
			map[string]want{"memory": {256 * mib, envelope.Clamped}, "pids": {64, envelope.Clamped}, "timeout": {60_000, envelope.Clamped},
				"cpus": {500, envelope.Clamped}, "output_keep": {mib, envelope.Clamped}, "nofile": {1024, ""}}, nil},
		{"limits at the defaults", "[limits]\nmemory = \"1GiB\"\npids = 512", map[string]want{"memory": {gib, ""}, "pids": {512, ""}}, nil},
		{"a default set beside its limit", "[defaults]\npids = 32\n[limits]\npids = 64", map[string]want{"pids": {32, envelope.FromConfig}}, nil},
		{"capacity below the defaults", "[capacity]\nmemory = \"512MiB\"\ncpus = 0.5",
			map[string]want{"memory": {488 * mib, envelope.Clamped}, "cpus": {500, envelope.Clamped}}, map[string]int64{"memory": 488 * mib, "cpus": 500}},
		{"capacity below the limits only", "[capacity]\nmemory = \"4GiB\"\ncpus = 2",
			map[string]want{"memory": {gib, ""}, "cpus": {1000, ""}}, map[string]int64{"memory": 4*gib - envelope.InitMemory, "cpus": 2000}},
		{"a limit set above capacity stands, the default shrinks", "[capacity]\nmemory = \"512MiB\"\n[limits]\nmemory = \"2GiB\"",
			map[string]want{"memory": {488 * mib, envelope.Clamped}}, map[string]int64{"memory": 2 * gib}},
		{"more capacity widens no limit", "[capacity]\nmemory = \"64GiB\"\ncpus = 64", map[string]want{"memory": {gib, ""}},
			map[string]int64{"memory": 14*gib - envelope.InitMemory, "cpus": 4000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			p := cfg.Profiles[0]
			for name, w := range c.defaults {
				if v, _ := p.Default.Amount(name); v != w.value || p.Origins[name] != w.origin {
					t.Errorf("defaults.%s: %d from %q, want %d from %q", name, v, p.Origins[name], w.value, w.origin)
				}
			}
			for name, w := range c.limits {
				if v, _ := p.Limit.Amount(name); v != w {
					t.Errorf("limits.%s: %d, want %d", name, v, w)
				}
			}
			if _, bad := envelope.Root(p, nil); len(bad) > 0 {
				t.Errorf("a request that asks nothing is refused: %+v", bad)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range sets {
		f.Add(line(s.key, s.value))
	}
	for _, s := range profileSets {
		f.Add(line(s.key, s.value))
	}
	for _, text := range []string{"", "\ufeff[log]\nlevel=\"info\"", "limits.memory = \"1GiB\"", "limits = {memory = \"1GiB\"}", "[limits]\nMemory=1",
		"[profiles.x]\ndelegates = [\"x\"]", "profiles.x.trust = \"trusted\"", "[profiles.x.budget]\ncpu = 1", "[limits]\nmax_depth = 1\n[profiles.tester.workspace]\nmax_mode = \"rw\"",
		"\"limits.memory\" = 1", "[[limits]]\nmemory=1", "a.b.c = 1", "[limits]\ncpus = 1e400", "\x00", "[limits]\ntimeout = 1979-05-27"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := config.Default(usual)
		if err := config.Parse(text, &c); err != nil {
			return
		}
		p := c.Profiles[0]
		if bad := append(p.Default.Check(), p.Default.Within(p.Limit)...); len(bad) > 0 {
			t.Errorf("%+v", bad)
		}
		if c.Capacity.MaxRunning < 1 || c.Capacity.MaxQueued < 1 || c.Capacity.MilliCPUs < 1 || c.Capacity.Memory < 1 || c.Capacity.MinFreeDisk < 1 ||
			c.Capacity.MaxRunningPerUser < 1 || c.Capacity.MaxQueuedPerUser < 1 || c.Socket.MaxConns < 1 || c.Jobs.Retention < 1 || len(c.Images.Allow) == 0 {
			t.Errorf("a zero passed: %+v", c)
		}
		soundProfiles(t, c)
	})
}
