package config

import (
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"

	"sandboxd/internal/envelope"
)

// Setting is one effective value of the configuration.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"` // config, default, or clamped where it was made smaller to fit beside another
}

// rows are the keys that are shown with their values, in the order of the example file.
var rows = []struct {
	key string
	get func(Config) any
}{
	{"socket.path", func(c Config) any { return c.Socket.Path }},
	{"socket.group", func(c Config) any { return c.Socket.Group }},
	{"socket.admin_group", func(c Config) any { return c.Socket.AdminGroup }},
	{"socket.max_connections", func(c Config) any { return c.Socket.MaxConns }},
	{"socket.max_connections_per_user", func(c Config) any { return c.Socket.MaxConnsUser }},
	{"state.dir", func(c Config) any { return c.State.Dir }},
	{"state.run_dir", func(c Config) any { return c.State.RunDir }},
	{"engine.host", func(c Config) any { return c.Engine.Host }},
	{"engine.runtime", func(c Config) any { return c.Engine.Runtime }},
	{"engine.call_timeout", func(c Config) any { return c.Engine.CallTimeout }},
	{"engine.warm_slots", func(c Config) any { return c.Engine.WarmSlots }},
	{"engine.warm_for", func(c Config) any { return c.Engine.WarmFor }},
	{"images.default", func(c Config) any { return c.Images.Default }},
	{"images.allow", func(c Config) any { return c.Images.Allow }},
	{"images.pull", func(c Config) any { return c.Images.Pull }},
	{"capacity.max_running", func(c Config) any { return c.Capacity.MaxRunning }},
	{"capacity.max_running_per_user", func(c Config) any { return c.Capacity.MaxRunningPerUser }},
	{"capacity.max_queued", func(c Config) any { return c.Capacity.MaxQueued }},
	{"capacity.max_queued_per_user", func(c Config) any { return c.Capacity.MaxQueuedPerUser }},
	{"capacity.cpus", func(c Config) any { return float64(c.Capacity.MilliCPUs) / 1000 }},
	{"capacity.memory", func(c Config) any { return envelope.ShowBytes(c.Capacity.Memory) }},
	{"capacity.min_free_disk", func(c Config) any { return envelope.ShowBytes(c.Capacity.MinFreeDisk) }},
	{"slots.uid_first", func(c Config) any { return c.Slots.UIDFirst }},
	{"slots.uid_count", func(c Config) any { return c.Slots.UIDCount }},
	{"slots.uid_stride", func(c Config) any { return c.Slots.UIDStride }},
	{"jobs.lease_grace", func(c Config) any { return c.Jobs.LeaseGrace }},
	{"jobs.cancel_grace", func(c Config) any { return c.Jobs.CancelGrace }},
	{"jobs.retention", func(c Config) any { return c.Jobs.Retention }},
	{"jobs.keep_per_user", func(c Config) any { return c.Jobs.KeepPerUser }},
	{"workspace.roots", func(c Config) any { return c.Workspace.Roots }},
	{"log.level", func(c Config) any { return c.Log.Level }},
	{"log.json", func(c Config) any { return c.Log.JSON }},
}

// Settings lists every effective value with its origin; text is the file that c was read from. The fields of profiles
// are shown by 'sbx profiles NAME'.
func Settings(text string, c Config) []Setting {
	var tree map[string]any
	md, _ := toml.Decode(text, &tree) // c was made from it, so it is sound
	named := map[string]bool{}
	for _, k := range md.Keys() {
		named[strings.Join(k, ".")] = true
	}
	origin := func(key string) string {
		if named[key] {
			return string(envelope.FromConfig)
		}
		return string(envelope.FromDefault)
	}
	var out []Setting
	for _, r := range rows {
		out = append(out, Setting{r.key, fmt.Sprint(r.get(c)), origin(r.key)})
	}
	standard := c.Profiles[0]
	for _, part := range []struct {
		section string
		p       envelope.Posture
	}{{"defaults", standard.Default}, {"limits", c.Ceiling.Limit}} {
		section, p := part.section, part.p
		for _, f := range (envelope.Envelope{Posture: p}).Fields() {
			if _, amount := p.Amount(f.Name); !amount {
				continue
			}
			key, from := section+"."+f.Name, origin(section+"."+f.Name)
			if from == string(envelope.FromDefault) && section == "defaults" && standard.Origins[f.Name] == envelope.Clamped {
				from = string(envelope.Clamped)
			}
			out = append(out, Setting{key, f.Value, from})
		}
	}
	return out
}

// LoadText is Load with the text it read beside it.
func LoadText(path string, h Host) (c Config, text string, err error) {
	if path != "" {
		if text, err = read(path); err != nil {
			return c, "", fmt.Errorf("config: %w; name an existing file with --config, or none for the defaults", err)
		}
	}
	c, err = Load(path, h)
	return c, text, err
}
