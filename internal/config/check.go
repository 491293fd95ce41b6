package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sandboxd/internal/envelope"
)

// maxSocketPath is what sun_path holds, less its NUL.
const maxSocketPath = 107

// check holds a whole configuration to its bounds and reports every fault.
func (c *Config) check() error {
	var bad []error
	fail := func(key, format string, args ...any) {
		bad = append(bad, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	least := func(key string, v, min int64) {
		if v < min {
			fail(key, "%d is out of range; write at least %d (0 never means unlimited), or leave the key out for the default", v, min)
		}
	}
	oneOf := func(key, v string, of ...string) {
		if !slices.Contains(of, v) {
			fail(key, "%q is not one of %s", v, strings.Join(of, ", "))
		}
	}
	absolute := func(key, v string) {
		if !filepath.IsAbs(v) || filepath.Clean(v) != v {
			fail(key, "%q is not a clean absolute path", v)
		}
	}
	absolute("socket.path", c.Socket.Path)
	if len(c.Socket.Path) > maxSocketPath {
		fail("socket.path", "%d bytes are more than a unix socket's path may have (%d)", len(c.Socket.Path), maxSocketPath)
	}
	absolute("state.dir", c.State.Dir)
	absolute("state.run_dir", c.State.RunDir)
	for _, r := range c.Workspace.Roots {
		absolute("workspace.roots", r)
	}
	oneOf("engine.runtime", c.Engine.Runtime, envelope.RuntimeRunc, envelope.RuntimeRunsc)
	oneOf("images.pull", c.Images.Pull, "never", "missing", "always")
	oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	c.checkCounts(least)
	c.checkImages(fail)
	c.checkSlots(fail)
	c.checkProfiles(fail)
	return errors.Join(bad...)
}

func (c *Config) checkCounts(least func(string, int64, int64)) {
	least("socket.max_connections", int64(c.Socket.MaxConns), 1)
	least("socket.max_connections_per_user", int64(c.Socket.MaxConnsUser), 1)
	least("engine.call_timeout (ns)", int64(c.Engine.CallTimeout), 1e9)
	least("capacity.max_running", int64(c.Capacity.MaxRunning), 1)
	least("capacity.max_running_per_user", int64(c.Capacity.MaxRunningPerUser), 1)
	least("capacity.max_queued", int64(c.Capacity.MaxQueued), 1)
	least("capacity.max_queued_per_user", int64(c.Capacity.MaxQueuedPerUser), 1)
	least("capacity.cpus (thousandths)", c.Capacity.MilliCPUs, envelope.MinMilliCPUs)
	least("capacity.memory", c.Capacity.Memory, envelope.MinMemory+envelope.InitMemory)
	least("capacity.min_free_disk", c.Capacity.MinFreeDisk, 1)
	least("jobs.lease_grace (ns)", int64(c.Jobs.LeaseGrace), 1e6)
	least("jobs.cancel_grace (ns)", int64(c.Jobs.CancelGrace), 1e6)
	least("jobs.retention (ns)", int64(c.Jobs.Retention), 1e9)
	least("jobs.keep_per_user", int64(c.Jobs.KeepPerUser), 1)
}

func (c *Config) checkImages(fail func(string, string, ...any)) {
	if len(c.Images.Allow) == 0 {
		fail("images.allow", "empty: no job could run; name at least one image")
	}
	if !slices.Contains(c.Images.Allow, c.Images.Default) {
		fail("images.default", "%q is not in images.allow (%s)", c.Images.Default, strings.Join(c.Images.Allow, ", "))
	}
}

func (c *Config) checkSlots(fail func(string, string, ...any)) {
	s := c.Slots
	if s.UIDFirst < 100000 || s.UIDStride < 8 || s.UIDCount < s.UIDStride || uint64(s.UIDFirst)+uint64(s.UIDCount) >= 1<<32-1 {
		fail("slots", "uid_first %d, uid_count %d, uid_stride %d: want uid_first ≥ 100000, uid_stride ≥ 8, uid_count ≥ uid_stride and no id above 4294967294",
			s.UIDFirst, s.UIDCount, s.UIDStride)
	}
	if places := int(s.UIDCount / max(s.UIDStride, 1)); places < 2*c.Capacity.MaxRunning {
		fail("slots.uid_count", "%d uids are room for %d containers; max_running = %d wants twice as many containers, for some may be in cleanup", s.UIDCount, places, c.Capacity.MaxRunning)
	}
}

func (c *Config) checkProfiles(fail func(string, string, ...any)) {
	for _, p := range c.Profiles {
		for _, v := range p.Default.Check() {
			fail("defaults."+v.Field, "%s is too small; %s", v.Asked, v.Allowed)
		}
		for _, v := range p.Limit.Check() {
			fail("limits."+v.Field, "%s is too small; %s", v.Asked, v.Allowed)
		}
		for _, v := range p.Default.Within(p.Limit) {
			fail("defaults."+v.Field, "%s is more than [limits] allows (%s)", v.Asked, v.Allowed)
		}
	}
}
