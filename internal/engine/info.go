package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Ping tells whether an engine answers that we can talk to.
func (d *Docker) Ping(ctx context.Context) error {
	return d.call(ctx, OpPing, "", d.opt.CallTimeout, func(ctx context.Context, s *session) error {
		_, err := s.Ping(ctx)
		return err
	})
}

// Info returns what the engine says of itself.
func (d *Docker) Info(ctx context.Context) (Info, error) {
	var out Info
	err := d.call(ctx, OpInfo, "", d.opt.CallTimeout, func(ctx context.Context, s *session) error {
		i, err := s.Info(ctx)
		if err != nil {
			return err
		}
		cgroups, err := strconv.Atoi(i.CgroupVersion)
		if err != nil {
			return fmt.Errorf("cgroup version %q of the engine's answer cannot be read", oneLine(i.CgroupVersion))
		}
		out = Info{
			Version: i.ServerVersion, APIVersion: s.api, CgroupDriver: i.CgroupDriver, CgroupVersion: cgroups,
			Runtimes: slices.Sorted(maps.Keys(i.Runtimes)), DefaultRT: i.DefaultRuntime, SecurityOpts: copied(i.SecurityOptions),
			StorageDriver: i.Driver, RootDir: i.DockerRootDir, LiveRestore: i.LiveRestoreEnabled, OSType: i.OSType, Arch: i.Architecture,
		}
		return nil
	})
	return out, err
}
