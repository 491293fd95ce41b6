package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/config"
	"sandboxd/internal/envelope"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// usual is the host of most tests.
var usual = config.Host{Cores: 4, Memory: 16 * gib}

func parse(text string) (config.Config, error) {
	c := config.Default(usual)
	err := config.Parse(text, &c)
	return c, err
}

// sets maps each key to a value and to what the value must have become; read is compared with want.
var sets = []struct {
	key, value string
	read       func(config.Config) any
	want       any
}{
	{"socket.path", `"/run/x.sock"`, func(c config.Config) any { return c.Socket.Path }, "/run/x.sock"},
	{"socket.group", `"dev"`, func(c config.Config) any { return c.Socket.Group }, "dev"},
	{"socket.admin_group", `"ops"`, func(c config.Config) any { return c.Socket.AdminGroup }, "ops"},
	{"socket.max_connections", "7", func(c config.Config) any { return c.Socket.MaxConns }, 7},
	{"socket.max_connections_per_user", "3", func(c config.Config) any { return c.Socket.MaxConnsUser }, 3},
	{"state.dir", `"/srv/s"`, func(c config.Config) any { return c.State.Dir }, "/srv/s"},
	{"state.run_dir", `"/run/s"`, func(c config.Config) any { return c.State.RunDir }, "/run/s"},
	{"engine.host", `"unix:///x"`, func(c config.Config) any { return c.Engine.Host }, "unix:///x"},
	{"engine.runtime", `"runc"`, func(c config.Config) any {
		return []string{c.Engine.Runtime, c.Profiles[0].Default.Runtime, c.Profiles[0].Limit.Runtime}
	}, []string{"runc", "runc", "runc"}},
	{"engine.call_timeout", `"5s"`, func(c config.Config) any { return c.Engine.CallTimeout }, 5 * time.Second},
	{"engine.warm_slots", "0", func(c config.Config) any { return c.Engine.WarmSlots }, 0},
	{"engine.warm_for", `"30s"`, func(c config.Config) any { return c.Engine.WarmFor }, 30 * time.Second},
	{"images.default", `"sandboxd/tiny"`, func(c config.Config) any { return c.Images.Default }, "sandboxd/tiny"},
	{"images.allow", `["sandboxd/base", "a"]`, func(c config.Config) any { return c.Images.Allow }, []string{"sandboxd/base", "a"}},
	{"images.pull", `"always"`, func(c config.Config) any { return c.Images.Pull }, "always"},
	{"capacity.max_running", "9", func(c config.Config) any { return []int{c.Capacity.MaxRunning, c.Capacity.MaxRunningPerUser} }, []int{9, 4}},
	{"capacity.max_running_per_user", "9", func(c config.Config) any { return c.Capacity.MaxRunningPerUser }, 9},
	{"capacity.max_queued", "1", func(c config.Config) any { return []int{c.Capacity.MaxQueued, c.Capacity.MaxQueuedPerUser} }, []int{1, 1}},
	{"capacity.max_queued_per_user", "9", func(c config.Config) any { return c.Capacity.MaxQueuedPerUser }, 9},
	{"capacity.cpus", "2.5", func(c config.Config) any { return c.Capacity.MilliCPUs }, int64(2500)},
	{"capacity.memory", `"4GiB"`, func(c config.Config) any { return c.Capacity.Memory }, int64(4 * gib)},
	{"capacity.min_free_disk", `"3g"`, func(c config.Config) any { return c.Capacity.MinFreeDisk }, int64(3 * gib)},
	{"slots.uid_first", "200000", func(c config.Config) any { return c.Slots.UIDFirst }, uint32(200000)},
	{"slots.uid_count", "8192", func(c config.Config) any { return c.Slots.UIDCount }, uint32(8192)},
	{"slots.uid_stride", "16", func(c config.Config) any { return c.Slots.UIDStride }, uint32(16)},
	{"jobs.lease_grace", "90", func(c config.Config) any { return c.Jobs.LeaseGrace }, 90 * time.Second},
	{"jobs.cancel_grace", `"1m30s"`, func(c config.Config) any { return c.Jobs.CancelGrace }, 90 * time.Second},
	{"jobs.retention", `"1h"`, func(c config.Config) any { return c.Jobs.Retention }, time.Hour},
	{"jobs.keep_per_user", "5", func(c config.Config) any { return c.Jobs.KeepPerUser }, 5},
	{"workspace.roots", `["/srv", "/data"]`, func(c config.Config) any { return c.Workspace.Roots }, []string{"/srv", "/data"}},
	{"log.level", `"debug"`, func(c config.Config) any { return c.Log.Level }, "debug"},
	{"log.json", "true", func(c config.Config) any { return c.Log.JSON }, true},
	{"defaults.cpus", `"0.25"`, standard("cpus"), int64(250)},
	{"defaults.memory", "536870912", standard("memory"), int64(512 * mib)},
	{"defaults.pids", "9", standard("pids"), int64(9)},
	{"defaults.nofile", "99", standard("nofile"), int64(99)},
	{"defaults.tmp_bytes", `"9m"`, standard("tmp_bytes"), int64(9 * mib)},
	{"defaults.home_bytes", `"9 MiB"`, nil, nil},
	{"defaults.home_bytes", `"9MB"`, standard("home_bytes"), int64(9 * mib)},
	{"defaults.out_bytes", `"9MiB"`, standard("out_bytes"), int64(9 * mib)},
	{"defaults.output_keep", `"9MiB"`, standard("output_keep"), int64(9 * mib)},
	{"defaults.timeout", `"90s"`, standard("timeout"), int64(90_000)},
	{"defaults.home_exec", "false", func(c config.Config) any { return c.Profiles[0].Default.HomeExec }, false},
	{"limits.cpus", "3.125", limit("cpus"), int64(3125)},
	{"limits.memory", `"9GiB"`, limit("memory"), int64(9 * gib)},
	{"limits.pids", "5000", limit("pids"), int64(5000)},
	{"limits.nofile", "5000", limit("nofile"), int64(5000)},
	{"limits.tmp_bytes", `"9GiB"`, limit("tmp_bytes"), int64(9 * gib)},
	{"limits.home_bytes", `"9GiB"`, limit("home_bytes"), int64(9 * gib)},
	{"limits.out_bytes", `"9GiB"`, limit("out_bytes"), int64(9 * gib)},
	{"limits.output_keep", `"1TiB"`, limit("output_keep"), int64(1024 * gib)},
	{"limits.timeout", `"48h"`, limit("timeout"), int64(48 * 3600_000)},
	{"limits.max_depth", "1", func(c config.Config) any { return []int64{c.Ceiling.Allows.MaxDepth, c.Profiles[0].Allows.MaxDepth} }, []int64{1, 1}},
	{"limits.max_tree_jobs", "9", func(c config.Config) any {
		return []int64{c.Ceiling.Allows.MaxTreeJobs, c.Profiles[0].Allows.MaxTreeJobs}
	}, []int64{9, 9}},
	{"limits.max_tree_live", "3", func(c config.Config) any {
		return []int64{c.Ceiling.Allows.MaxTreeLive, c.Profiles[0].Allows.MaxTreeLive}
	}, []int64{3, 3}},
	{"limits.budget.wall", `"2h"`, most("wall_ms"), int64(7_200_000)},
	{"limits.budget.cpu", `"1h"`, most("cpu_ms"), int64(3_600_000)},
	{"limits.budget.egress_bytes", `"1GiB"`, most("egress_bytes"), int64(gib)},
	{"limits.budget.output_bytes", `"1MiB"`, most("output_bytes"), int64(mib)},
	{"limits.budget.artifact_bytes", "7", most("artifact_bytes"), int64(7)},
	{"limits.budget.input_tokens", "1", most("input_tokens"), int64(1)},
	{"limits.budget.output_tokens", "2", most("output_tokens"), int64(2)},
	{"limits.budget.tool_calls", "3", most("tool_calls"), int64(3)},
	{"limits.budget.cost_micro_usd", "4", most("cost_micro_usd"), int64(4)},
}

// most is a budget of [limits], which binds the default profile as well.
func most(d budget.Dim) func(config.Config) any {
	return func(c config.Config) any {
		n, limited := c.Profiles[0].Allows.Budget.Of(d)
		if limited != (c.Ceiling.Allows.Budget[d] == n) {
			return "the default profile is not bound"
		}
		return n
	}
}

func standard(name string) func(config.Config) any {
	return func(c config.Config) any { v, _ := c.Profiles[0].Default.Amount(name); return v }
}

func limit(name string) func(config.Config) any {
	return func(c config.Config) any { v, _ := c.Profiles[0].Limit.Amount(name); return v }
}

func line(key, value string) string {
	at := strings.LastIndexByte(key, '.')
	return "[" + key[:at] + "]\n" + key[at+1:] + " = " + value + "\n"
}

func TestEveryKeyIsReadIntoItsField(t *testing.T) {
	covered := map[string]bool{}
	for _, s := range sets {
		c, err := parse(line(s.key, s.value))
		if s.read == nil {
			if err == nil {
				t.Errorf("%s = %s passes", s.key, s.value)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s = %s: %v", s.key, s.value, err)
			continue
		}
		if diff := cmp.Diff(s.want, s.read(c)); diff != "" {
			t.Errorf("%s = %s: %s", s.key, s.value, diff)
		}
		if name, ok := strings.CutPrefix(s.key, "defaults."); ok && c.Profiles[0].Origins[name] != envelope.FromConfig {
			t.Errorf("%s comes from %q", s.key, c.Profiles[0].Origins[name])
		}
		section, _, _ := strings.Cut(s.key, ".")
		covered[s.key], covered[section] = true, true
	}
	for _, s := range profileSets {
		covered[strings.Replace(s.key, "profiles.x", "profiles.NAME", 1)] = true
	}
	for k := range covered {
		for at := strings.LastIndexByte(k, '.'); at > 0; at = strings.LastIndexByte(k[:at], '.') {
			covered[k[:at]] = true
		}
	}
	for _, k := range config.Keys() {
		if !covered[k] {
			t.Errorf("%s is not tried", k)
		}
	}
}

// What a file does not name stays as it was.
func TestAKeyChangesNothingBesideItself(t *testing.T) {
	for _, s := range sets {
		if s.read == nil || strings.HasPrefix(s.key, "capacity.") {
			continue
		}
		c, err := parse(line(s.key, s.value))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range sets {
			if other.read == nil || other.key == s.key {
				continue
			}
			if diff := cmp.Diff(other.read(config.Default(usual)), other.read(c)); diff != "" {
				t.Errorf("%s changed %s: %s", s.key, other.key, diff)
			}
		}
	}
}

func TestLoadReadsAFileOverTheDefaults(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c, err := config.Load("", usual)
	if err != nil || !cmp.Equal(c, config.Default(usual)) {
		t.Errorf("no file: %v", err)
	}
	c, err = config.Load(write("good", "[log]\nlevel = \"warn\"\n"), usual)
	if err != nil || c.Log.Level != "warn" {
		t.Errorf("a file: %v, %+v", err, c.Log)
	}
	for name, f := range map[string]struct{ path, want string }{
		"missing":      {filepath.Join(dir, "none"), "name an existing file with --config"},
		"a folder":     {dir, "is a directory"},
		"broken":       {write("broken", "[log\n"), "broken: line "},
		"wrong":        {write("wrong", "[log]\nlevel = \"loud\"\n"), `wrong: log.level: "loud" is not one of debug, info, warn, error`},
		"too large":    {write("large", "#"+strings.Repeat(" ", 1<<20)), "more bytes than a config may have"},
		"without end":  {"/dev/zero", "more bytes than a config may have"},
		"not readable": {"/proc/self/mem", "config: "},
	} {
		if _, err := config.Load(f.path, usual); err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysAreUnique(t *testing.T) {
	keys := config.Keys()
	if len(keys) < 50 || len(slices.Compact(slices.Clone(keys))) != len(keys) || slices.Contains(keys, "limits.home_exec") {
		t.Errorf("%d keys: %v", len(keys), keys)
	}
}
