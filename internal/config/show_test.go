package config_test

import (
	"testing"

	"sandboxd/internal/config"
)

// Every setting is listed once, with where it came from.
func TestSettingsTellTheirOrigin(t *testing.T) {
	text := "[capacity]\nmax_running = 3\n[defaults]\npids = 9\n[limits]\nmemory = \"256MiB\"\n"
	c := config.Default(config.Host{Cores: 2, Memory: 8 << 30})
	if err := config.Parse(text, &c); err != nil {
		t.Fatal(err)
	}
	got := map[string]config.Setting{}
	for _, s := range config.Settings(text, c) {
		if _, twice := got[s.Key]; twice {
			t.Errorf("%s is listed twice", s.Key)
		}
		got[s.Key] = s
	}
	for key, want := range map[string]config.Setting{
		"capacity.max_running": {Key: "capacity.max_running", Value: "3", Origin: "config"},
		"capacity.max_queued":  {Key: "capacity.max_queued", Value: "10000", Origin: "default"},
		"defaults.pids":        {Key: "defaults.pids", Value: "9", Origin: "config"},
		"defaults.memory":      {Key: "defaults.memory", Value: "256MiB", Origin: "clamped"},
		"limits.memory":        {Key: "limits.memory", Value: "256MiB", Origin: "config"},
		"limits.pids":          {Key: "limits.pids", Value: "4096", Origin: "default"},
		"log.json":             {Key: "log.json", Value: "false", Origin: "default"},
	} {
		if got[key] != want {
			t.Errorf("%s: %+v, want %+v", key, got[key], want)
		}
	}
}
