package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

var errIncomplete = errors.New("the engine's answer lacks the container's state or configuration")

// read writes the engine's record of a container in our words, in normal form.
func read(r container.InspectResponse) (Container, State, error) {
	if r.ContainerJSONBase == nil || r.State == nil || r.HostConfig == nil || r.Config == nil || r.ID == "" {
		return Container{}, State{}, errIncomplete
	}
	c := Container{Name: strings.TrimPrefix(r.Name, "/"), Image: r.Image}
	readConfig(&c, r.Config)
	readHost(&c, r.HostConfig)
	c.Binds, c.Volumes, c.Others = readMounts(r.HostConfig.Mounts, r.Mounts)
	c.Others = append(c.Others, others(r.Config, r.HostConfig)...)
	slices.Sort(c.Others)
	return Normal(c), readState(r), nil
}

func readConfig(c *Container, config *container.Config) {
	c.Entrypoint, c.Cmd, c.Env = config.Entrypoint, config.Cmd, config.Env
	c.WorkingDir, c.Hostname, c.User = config.WorkingDir, config.Hostname, config.User
	c.Labels, c.StopSignal = config.Labels, config.StopSignal
	c.Tty, c.OpenStdin = config.Tty, config.OpenStdin
	c.Healthcheck = isHealthcheck(config.Healthcheck)
}

func isHealthcheck(h *container.HealthConfig) bool {
	return h != nil && len(h.Test) > 0 && h.Test[0] != "NONE"
}

func readHost(c *Container, host *container.HostConfig) {
	c.Runtime, c.AutoRemove = host.Runtime, host.AutoRemove
	c.LogDriver = cmp.Or(host.LogConfig.Type, "default")
	c.RestartPolicy = string(host.RestartPolicy.Name)
	c.Init = host.Init == nil || *host.Init // null is the engine's default, which may be on

	c.NetworkMode, c.PublishAllPorts, c.PortBindings = string(host.NetworkMode), host.PublishAllPorts, len(host.PortBindings)
	c.DNS, c.DNSSearch, c.DNSOptions, c.ExtraHosts = host.DNS, host.DNSSearch, host.DNSOptions, host.ExtraHosts
	c.Links, c.VolumesFrom, c.Sysctls = len(host.Links), len(host.VolumesFrom), len(host.Sysctls)

	c.Privileged, c.ReadonlyRootfs = host.Privileged, host.ReadonlyRootfs
	c.CapDrop, c.CapAdd, c.SecurityOpt, c.Groups = host.CapDrop, host.CapAdd, host.SecurityOpt, host.GroupAdd
	c.MaskedPaths, c.ReadonlyPaths = host.MaskedPaths, host.ReadonlyPaths
	c.IpcMode, c.CgroupnsMode, c.CgroupParent = string(host.IpcMode), string(host.CgroupnsMode), host.CgroupParent
	c.PidMode, c.UTSMode, c.UsernsMode = string(host.PidMode), string(host.UTSMode), string(host.UsernsMode)
	c.Devices = len(host.Devices) + len(host.DeviceRequests) + len(host.DeviceCgroupRules)

	c.Memory, c.MemorySwap, c.NanoCPUs = host.Memory, host.MemorySwap, host.NanoCPUs
	if host.PidsLimit != nil {
		c.PidsLimit = *host.PidsLimit
	}
	c.OomScoreAdj, c.ShmSize, c.Tmpfs = host.OomScoreAdj, host.ShmSize, host.Tmpfs
	for _, u := range host.Ulimits {
		if u != nil {
			c.Ulimits = append(c.Ulimits, Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
		}
	}
}

// readMounts takes the binds that were asked for, when the engine's list of mount points says the same; any mount point
// beyond them is a volume or goes to the others.
func readMounts(asked []mount.Mount, points []container.MountPoint) (binds []Bind, volumes int, others []string) {
	byTarget := map[string]container.MountPoint{}
	for _, p := range points {
		if p.Type == mount.TypeVolume {
			volumes++
			continue
		}
		byTarget[p.Destination] = p
	}
	for _, m := range asked {
		if m.Type == mount.TypeVolume {
			continue // counted above
		}
		p, exists := byTarget[m.Target]
		delete(byTarget, m.Target)
		if m.Type != mount.TypeBind || !exists || p.Type != mount.TypeBind || p.Source != m.Source || p.RW == m.ReadOnly || !plainBind(m.BindOptions) {
			others = append(others, fmt.Sprintf("HostConfig.Mounts=%s %s on %s", m.Type, m.Source, m.Target))
			continue
		}
		binds = append(binds, Bind{Source: p.Source, Target: p.Destination, ReadOnly: !p.RW, Propagation: string(p.Propagation)})
	}
	for _, p := range byTarget {
		others = append(others, fmt.Sprintf("Mounts=%s %s on %s", p.Type, p.Source, p.Destination))
	}
	return binds, volumes, others
}

// plainBind: not recursive, and the engine makes no source. Newer engines add ReadOnlyNonRecursive for older clients.
func plainBind(o *mount.BindOptions) bool {
	return o != nil && o.NonRecursive && !o.CreateMountpoint && !o.ReadOnlyForceRecursive
}

func readState(r container.InspectResponse) State {
	s := r.State
	return State{
		ID: r.ID, Name: strings.TrimPrefix(r.Name, "/"), Status: s.Status, Pid: s.Pid, ExitCode: s.ExitCode, OOMKilled: s.OOMKilled,
		Error: oneLine(s.Error), StartedAt: moment(s.StartedAt), FinishedAt: moment(s.FinishedAt),
		Labels: r.Config.Labels, Image: r.Image,
	}
}

// moment reads a time; never happened is the zero time.
func moment(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t
}
