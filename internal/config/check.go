package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

const (
	maxSocketPath = 107     // what sun_path holds, less its NUL
	maxPids       = 4 << 20 // the kernel's PID_MAX_LIMIT
	maxNofile     = 1 << 20 // the kernel's fs.nr_open as it is shipped
	minUID        = 100000  // below it stand the accounts of the host
	minStride     = 8       // a slot's own uid and its seven group places
)

// faults gathers what is wrong with a configuration, each fault under its key.
type faults []error

func (b *faults) fail(key, format string, args ...any) {
	*b = append(*b, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
}

func (b *faults) least(key string, v, min int64, show func(int64) string) {
	if v < min {
		b.fail(key, "%s is out of range; write at least %s (0 never means unlimited), or leave the key out for the default", show(v), show(min))
	}
}

func (b *faults) oneOf(key, v string, of ...string) {
	if !slices.Contains(of, v) {
		b.fail(key, "%.64q is not one of %s", v, strings.Join(of, ", "))
	}
}

func (b *faults) absolute(key, v string) {
	if !filepath.IsAbs(v) || filepath.Clean(v) != v || strings.IndexFunc(v, unicode.IsControl) >= 0 {
		b.fail(key, "%.128q is not a clean absolute path", v)
	}
}

func showCount(n int64) string { return strconv.FormatInt(n, 10) }
func showSpan(n int64) string  { return time.Duration(n).String() }
func showCores(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

// check holds a whole configuration to its bounds and reports every fault.
func (c *Config) check() error {
	var b faults
	b.absolute("socket.path", c.Socket.Path)
	if len(c.Socket.Path) > maxSocketPath {
		b.fail("socket.path", "%d bytes are more than a unix socket's path may have (%d)", len(c.Socket.Path), maxSocketPath)
	}
	for key, dir := range map[string]string{"state.dir": c.State.Dir, "state.run_dir": c.State.RunDir} {
		b.absolute(key, dir)
		if dir == "/" {
			b.fail(key, "the whole host cannot be the daemon's own folder")
		}
	}
	for _, r := range c.Workspace.Roots {
		b.absolute("workspace.roots", r)
	}
	if c.Workspace.Roots != nil && len(c.Workspace.Roots) == 0 {
		b.fail("workspace.roots", "empty: no path could be given to a job; name folders, or leave the key out for what callers own themselves")
	}
	if c.Engine.Runtime == envelope.RuntimeRunsc {
		// Every job would fail at its start gate: the daemon says so at once.
		b.fail("engine.runtime", "what a container under runsc must look like is not known to this version, so no job could pass the gate; use %q", envelope.RuntimeRunc)
	} else {
		b.oneOf("engine.runtime", c.Engine.Runtime, envelope.RuntimeRunc)
	}
	b.oneOf("images.pull", c.Images.Pull, "never", "missing", "always")
	b.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	c.checkCounts(&b)
	c.checkImages(&b)
	c.checkSlots(&b)
	return errors.Join(b...)
}

func (c *Config) checkCounts(b *faults) {
	b.least("socket.max_connections", int64(c.Socket.MaxConns), 1, showCount)
	b.least("socket.max_connections_per_user", int64(c.Socket.MaxConnsUser), 1, showCount)
	b.least("engine.call_timeout", int64(c.Engine.CallTimeout), 1e9, showSpan)
	b.least("engine.warm_slots", int64(c.Engine.WarmSlots), 0, showCount)
	b.least("engine.warm_for", int64(c.Engine.WarmFor), 1e9, showSpan)
	b.least("capacity.max_running", int64(c.Capacity.MaxRunning), 1, showCount)
	b.least("capacity.max_running_per_user", int64(c.Capacity.MaxRunningPerUser), 1, showCount)
	b.least("capacity.max_queued", int64(c.Capacity.MaxQueued), 1, showCount)
	b.least("capacity.max_queued_per_user", int64(c.Capacity.MaxQueuedPerUser), 1, showCount)
	b.least("capacity.cpus", c.Capacity.MilliCPUs, envelope.MinMilliCPUs, showCores)
	b.least("capacity.memory", c.Capacity.Memory, envelope.MinMemory+envelope.InitMemory, envelope.ShowBytes)
	b.least("capacity.min_free_disk", c.Capacity.MinFreeDisk, 1, envelope.ShowBytes)
	b.least("jobs.lease_grace", int64(c.Jobs.LeaseGrace), 1e6, showSpan)
	b.least("jobs.cancel_grace", int64(c.Jobs.CancelGrace), 1e6, showSpan)
	b.least("jobs.retention", int64(c.Jobs.Retention), 1e9, showSpan)
	b.least("jobs.keep_per_user", int64(c.Jobs.KeepPerUser), 1, showCount)
}

func (c *Config) checkImages(b *faults) {
	if len(c.Images.Allow) == 0 {
		b.fail("images.allow", "empty: no job could run; name at least one image")
	}
	for _, name := range c.Images.Allow {
		if strings.TrimSpace(name) != name || name == "" || strings.IndexFunc(name, unicode.IsControl) >= 0 {
			b.fail("images.allow", "%.128q is not an image's name", name)
		}
	}
	if !slices.Contains(c.Images.Allow, c.Images.Default) {
		b.fail("images.default", "%.128q is not in images.allow (%s)", c.Images.Default, strings.Join(c.Images.Allow, ", "))
	}
}

func (c *Config) checkSlots(b *faults) {
	s := c.Slots
	b.least("slots.uid_first", int64(s.UIDFirst), minUID, showCount)
	b.least("slots.uid_stride", int64(s.UIDStride), minStride, showCount)
	if last := uint64(s.UIDFirst) + uint64(s.UIDCount); last > maxID {
		b.fail("slots.uid_count", "%d uids from %d on go beyond the last there is (%d)", s.UIDCount, s.UIDFirst, int64(maxID))
	}
	if places := int(s.UIDCount / max(s.UIDStride, 1)); places/2 < c.Capacity.MaxRunning {
		b.fail("slots.uid_count", "%d uids are room for %d containers; max_running = %d wants twice as many containers, for some may be in cleanup",
			s.UIDCount, places, c.Capacity.MaxRunning)
	}
}

// checkBase looks at what [defaults] and [limits] set; the rest is sound or was made to fit.
func (c *Config) checkBase(b *faults, p envelope.Profile) {
	for _, v := range p.Limit.Check() {
		b.fail("limits."+v.Field, "%s is too small; write %s (0 never means unlimited)", v.Asked, v.Allowed)
	}
	if p.Limit.Pids > maxPids {
		b.fail("limits.pids", "%d is more than a kernel has (%d)", p.Limit.Pids, maxPids)
	}
	if p.Limit.Nofile > maxNofile {
		b.fail("limits.nofile", "%d is more than a kernel allows (%d)", p.Limit.Nofile, maxNofile)
	}
	set := func(v job.Violation) bool { return p.Origins[v.Field] == envelope.FromConfig }
	for _, v := range p.Default.Check() {
		if set(v) {
			b.fail("defaults."+v.Field, "%s is too small; write %s (0 never means unlimited)", v.Asked, v.Allowed)
		}
	}
	for _, v := range p.Default.Within(p.Limit) {
		if set(v) {
			b.fail("defaults."+v.Field, "%s is more than [limits] allows (%s)", v.Asked, v.Allowed)
		}
	}
	for _, v := range p.Default.Within(c.Capacity.share(p.Default)) {
		if set(v) {
			b.fail("defaults."+v.Field, "%s is more than [capacity] leaves one job (%s)", v.Asked, v.Allowed)
		}
	}
}
