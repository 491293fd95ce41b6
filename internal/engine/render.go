package engine

import (
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
)

// render writes a valid Container in the engine's words. Nothing is left to the engine's defaults: what is off is sent
// as off, lists that replace a default are sent even when empty.
func render(c Container) (*container.Config, *container.HostConfig, *network.NetworkingConfig) {
	c = Normal(c)
	config := &container.Config{
		Hostname: c.Hostname,
		User:     c.User,
		Env:      c.Env,
		Cmd:      nonNil(c.Cmd),
		// Without a test of its own the container would inherit the image's.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		Image:       c.Image,
		WorkingDir:  c.WorkingDir,
		// Not nil even when empty: nil would take the image's.
		Entrypoint:   nonNil(c.Entrypoint),
		Labels:       c.Labels,
		StopSignal:   c.StopSignal,
		Tty:          false,
		OpenStdin:    false,
		AttachStdin:  false,
		AttachStdout: false,
		AttachStderr: false,
	}
	host := &container.HostConfig{
		LogConfig:     container.LogConfig{Type: c.LogDriver},
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyMode(c.RestartPolicy)},
		Runtime:       c.Runtime,
		AutoRemove:    false,
		Init:          new(false),

		NetworkMode:     container.NetworkMode(c.NetworkMode),
		PublishAllPorts: false,
		DNS:             c.DNS,
		DNSSearch:       c.DNSSearch,
		DNSOptions:      c.DNSOptions,
		ExtraHosts:      c.ExtraHosts,

		Privileged:     false,
		ReadonlyRootfs: c.ReadonlyRootfs,
		CapDrop:        c.CapDrop,
		CapAdd:         c.CapAdd,
		SecurityOpt:    c.SecurityOpt,
		GroupAdd:       c.Groups,
		MaskedPaths:    nonNil(c.MaskedPaths),
		ReadonlyPaths:  nonNil(c.ReadonlyPaths),
		IpcMode:        container.IpcMode(c.IpcMode),
		CgroupnsMode:   container.CgroupnsMode(c.CgroupnsMode),
		PidMode:        container.PidMode(c.PidMode),
		UTSMode:        container.UTSMode(c.UTSMode),
		UsernsMode:     container.UsernsMode(c.UsernsMode),

		OomScoreAdj: c.OomScoreAdj,
		ShmSize:     c.ShmSize,
		// The raw options of HostConfig.Tmpfs: those of the mounts API know no uid, gid and nr_inodes.
		Tmpfs:     c.Tmpfs,
		Mounts:    mounts(c.Binds),
		Resources: resources(c),
	}
	return config, host, &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{}}
}

func resources(c Container) container.Resources {
	r := container.Resources{
		CgroupParent:     c.CgroupParent,
		Memory:           c.Memory,
		MemorySwap:       c.MemorySwap,
		NanoCPUs:         c.NanoCPUs,
		PidsLimit:        new(c.PidsLimit),
		OomKillDisable:   new(false),
		MemorySwappiness: nil,
	}
	for _, u := range c.Ulimits {
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	return r
}

// mounts uses the mounts API, for which a missing source is an error; with the older Binds the engine would create it.
func mounts(binds []Bind) []mount.Mount {
	var out []mount.Mount
	for _, b := range binds {
		out = append(out, mount.Mount{
			Type: mount.TypeBind, Source: b.Source, Target: b.Target, ReadOnly: b.ReadOnly,
			BindOptions: &mount.BindOptions{Propagation: mount.Propagation(b.Propagation), NonRecursive: true, CreateMountpoint: false},
		})
	}
	return out
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
