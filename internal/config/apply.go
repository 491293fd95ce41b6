package config

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"sandboxd/internal/envelope"
)

func put[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func putInt(to *int, from *int64) {
	if from != nil {
		*to = int(*from)
	}
}

// applyTo writes what the file names over the defaults, and says what is wrong with its profiles.
func (f file) applyTo(c *Config) faults {
	put(&c.Socket.Path, f.Socket.Path)
	put(&c.Socket.Group, f.Socket.Group)
	put(&c.Socket.AdminGroup, f.Socket.AdminGroup)
	putInt(&c.Socket.MaxConns, f.Socket.MaxConns)
	putInt(&c.Socket.MaxConnsUser, f.Socket.MaxConnsUser)
	put(&c.State.Dir, f.State.Dir)
	put(&c.State.RunDir, f.State.RunDir)
	put(&c.Engine.Host, f.Engine.Host)
	put(&c.Engine.Runtime, f.Engine.Runtime)
	put(&c.Engine.CallTimeout, (*time.Duration)(f.Engine.CallTimeout))
	putInt(&c.Engine.WarmSlots, f.Engine.WarmSlots)
	put(&c.Engine.WarmFor, (*time.Duration)(f.Engine.WarmFor))
	put(&c.Images.Default, f.Images.Default)
	put(&c.Images.Allow, f.Images.Allow)
	put(&c.Images.Pull, f.Images.Pull)
	f.Capacity.applyTo(&c.Capacity)
	f.Slots.applyTo(&c.Slots)
	put(&c.Jobs.LeaseGrace, (*time.Duration)(f.Jobs.LeaseGrace))
	put(&c.Jobs.CancelGrace, (*time.Duration)(f.Jobs.CancelGrace))
	put(&c.Jobs.Retention, (*time.Duration)(f.Jobs.Retention))
	putInt(&c.Jobs.KeepPerUser, f.Jobs.KeepPerUser)
	put(&c.Workspace.Roots, f.Workspace.Roots)
	put(&c.Log.Level, f.Log.Level)
	put(&c.Log.JSON, f.Log.JSON)
	return f.applyProfiles(c)
}

func (f fileCapacity) applyTo(c *Capacity) {
	putInt(&c.MaxRunning, f.MaxRunning)
	putInt(&c.MaxQueued, f.MaxQueued)
	if f.MaxRunning != nil {
		c.MaxRunningPerUser = max(c.MaxRunning/2, 1)
	}
	if f.MaxQueued != nil {
		c.MaxQueuedPerUser = max(c.MaxQueued/2, 1)
	}
	putInt(&c.MaxRunningPerUser, f.MaxRunningPerUser)
	putInt(&c.MaxQueuedPerUser, f.MaxQueuedPerUser)
	put(&c.MilliCPUs, (*int64)(f.CPUs))
	put(&c.Memory, (*int64)(f.Memory))
	put(&c.MinFreeDisk, (*int64)(f.MinFreeDisk))
}

const maxID = 1<<32 - 2 // 1<<32 - 1 means "no id" to the kernel

// keys are the numbers of the section with their names.
func (f fileSlots) keys(c *Slots) map[string]struct {
	from *int64
	to   *uint32
} {
	return map[string]struct {
		from *int64
		to   *uint32
	}{"uid_first": {f.UIDFirst, &c.UIDFirst}, "uid_count": {f.UIDCount, &c.UIDCount}, "uid_stride": {f.UIDStride, &c.UIDStride}}
}

// check refuses what no uid can be, before it is cut to the size of one.
func (f fileSlots) check() error {
	var bad []error
	for key, v := range f.keys(&Slots{}) {
		if v.from != nil && (*v.from < 1 || *v.from > maxID) {
			bad = append(bad, fmt.Errorf("slots.%s: %d is out of range; write 1 to %d", key, *v.from, int64(maxID)))
		}
	}
	return errors.Join(bad...)
}

func (f fileSlots) applyTo(c *Slots) {
	for _, v := range f.keys(c) {
		if v.from != nil {
			*v.to = uint32(*v.from)
		}
	}
}

// base is what every profile has that does not say otherwise: [defaults] and [limits]. A limit that the file does not set
// shrinks to what all jobs together may use, a default that it does not set shrinks to its limit; a value that it does set
// stands, or is a fault.
func (f file) base(c *Config) envelope.Profile {
	p := c.Profiles[0]
	p.Origins = maps.Clone(p.Origins)
	p.Default.Runtime, p.Limit.Runtime = c.Engine.Runtime, c.Engine.Runtime
	limits := f.Limits.apply(&p.Limit)
	for name := range f.Defaults.apply(&p.Default) {
		p.Origins[name] = envelope.FromConfig
	}
	if f.Defaults.HomeExec != nil {
		p.Default.HomeExec, p.Origins["home_exec"] = *f.Defaults.HomeExec, envelope.FromConfig
	}
	p.Limit.ShrinkTo(c.Capacity.share(p.Limit), func(name string) bool { return limits[name] })
	byConfig := func(name string) bool { return p.Origins[name] == envelope.FromConfig }
	for _, name := range p.Default.ShrinkTo(c.Capacity.share(p.Limit), byConfig) {
		p.Origins[name] = envelope.Clamped
	}
	return p
}

// share is a posture cut down to what one job can have where all together have c.
func (c Capacity) share(p envelope.Posture) envelope.Posture {
	p.MilliCPUs = max(min(p.MilliCPUs, c.MilliCPUs), envelope.MinMilliCPUs)
	p.Memory = max(min(p.Memory, c.Memory-envelope.InitMemory), envelope.MinMemory)
	return p
}

// apply writes what the section names over p and returns the names.
func (a fileAmounts) apply(p *envelope.Posture) map[string]bool {
	named := map[string]bool{}
	set := func(name string, to *int64, from *int64) {
		if from != nil {
			*to = *from
			named[name] = true
		}
	}
	set("cpus", &p.MilliCPUs, (*int64)(a.CPUs))
	set("memory", &p.Memory, (*int64)(a.Memory))
	set("pids", &p.Pids, a.Pids)
	set("nofile", &p.Nofile, a.Nofile)
	set("tmp_bytes", &p.TmpBytes, (*int64)(a.TmpBytes))
	set("home_bytes", &p.HomeBytes, (*int64)(a.HomeBytes))
	set("out_bytes", &p.OutBytes, (*int64)(a.OutBytes))
	set("output_keep", &p.OutputKeep, (*int64)(a.OutputKeep))
	if a.Timeout != nil {
		ms := int64(*a.Timeout) / 1e6
		set("timeout", &p.TimeoutMS, &ms)
	}
	return named
}
