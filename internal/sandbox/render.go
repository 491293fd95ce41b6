package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/engine"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// Facts are what Render needs beside the posture: the slot's own names and what the host has.
type Facts struct {
	Instance, Slot, Job string
	UID                 uint32 // and gid; the group places are the seven ids after it
	CgroupParent        string
	InitFile, SbxFile   string // host paths of the installed binaries
	SlotDir             string
	Binds               []Bind
	ImageEnv            []string // of the image, all of it is taken out of the container
	ImageVolumes        []string // of the image, each is shadowed
	MaskToo             []string // paths of this host to mask beside the constant ones
	Seccomp             string   // JSON of the filter
	AppArmor            bool     // the engine has it
	HostMilliCPUs       int64
}

const (
	// GroupPlaces is how many supplementary groups a slot has: the ids after its gid.
	GroupPlaces = 7
	// initMilliCPUs is what a container has beyond the job's own, where the host has it: a job at its limit must not
	// starve init.
	initMilliCPUs = 100
	// minMilliCPUs is the least the engine takes.
	minMilliCPUs = 10
	// runscPids: the runtime counts its own threads against the limit, and dies at a small one.
	runscPids = 4096
	// softNofile is the usual soft limit; programs that need more raise it to the posture's.
	softNofile = 1024
	// noShm: IpcMode none has no /dev/shm; the engine wants a size all the same.
	noShm = 1 << 20

	appArmorProfile = "docker-default"
)

// initEnv is the whole environment of init. What the image gives is taken out by name, since variables such as GODEBUG
// and GOMEMLIMIT would change init itself. The command's environment comes with its start message.
var initEnv = []string{"HOME=/", "HOSTNAME=" + Hostname, "PATH=/sbx/bin"}

// Render writes the engine's configuration of a slot's container. It is pure: the same posture and facts give the same
// container. Every field is set. The error is a job.Error that names a posture which cannot be rendered.
func Render(p envelope.Posture, f Facts) (engine.Container, error) {
	if err := renderable(p, f); err != nil {
		return engine.Container{}, err
	}
	tmpfs, err := tmpfsMounts(p, f)
	if err != nil {
		return engine.Container{}, err
	}
	limits := containerLimits(p, f.HostMilliCPUs)
	return engine.Container{
		Name:       ContainerName(f.Instance, f.Slot),
		Image:      p.ImageID,
		Runtime:    p.Runtime,
		Entrypoint: []string{PathInit},
		Env:        append(slices.Clone(initEnv), withoutValues(f.ImageEnv)...),
		WorkingDir: "/",
		Hostname:   Hostname,
		User:       fmt.Sprintf("%d:%d", f.UID, f.UID),
		Groups:     groupPlaces(f.UID),
		Labels:     map[string]string{LabelInstance: f.Instance, LabelSlot: f.Slot, LabelJob: f.Job},
		StopSignal: "SIGKILL",

		ReadonlyRootfs: true,
		CapDrop:        []string{"ALL"},
		SecurityOpt:    securityOptions(f),
		MaskedPaths:    slices.Concat(maskedPaths, f.MaskToo),
		ReadonlyPaths:  slices.Clone(readonlyPaths),
		NetworkMode:    "none",
		IpcMode:        "none",
		CgroupnsMode:   "private",
		CgroupParent:   f.CgroupParent,
		DNS:            []string{"127.0.0.1"},
		DNSSearch:      []string{"."},
		DNSOptions:     []string{"ndots:1"},

		Memory:      limits.memory,
		MemorySwap:  limits.memory,
		NanoCPUs:    limits.milliCPUs * 1e6,
		PidsLimit:   limits.pids,
		OomScoreAdj: 500,
		ShmSize:     noShm,
		Ulimits:     ulimits(p),
		Tmpfs:       tmpfs,
		Binds:       bindMounts(f),

		RestartPolicy: "no",
		LogDriver:     "none",
	}, nil
}

// ContainerName is the name of a slot's container.
func ContainerName(instance, slot string) string { return "sandboxd-" + instance[:8] + "-" + slot }

func renderable(p envelope.Posture, f Facts) error {
	for _, v := range []struct {
		field string
		value int64
		least int64
	}{
		{"milli_cpus", p.MilliCPUs, minMilliCPUs}, {"memory", p.Memory, 1}, {"pids", p.Pids, 1}, {"nofile", p.Nofile, 1},
		{"tmp_bytes", p.TmpBytes, pageSize}, {"home_bytes", p.HomeBytes, pageSize}, {"out_bytes", p.OutBytes, pageSize},
		{"inodes", p.Inodes, 1},
	} {
		if v.value < v.least {
			return job.Errorf(job.CodeInvalid, v.field, "%d is less than %d", v.value, v.least)
		}
	}
	switch {
	case p.Runtime != envelope.RuntimeRunc && p.Runtime != envelope.RuntimeRunsc:
		return job.Errorf(job.CodeInvalid, "runtime", "%.64q is neither runc nor runsc", p.Runtime)
	case p.MilliCPUs > f.HostMilliCPUs:
		return job.Errorf(job.CodeCapacity, "milli_cpus", "%d, and the host has %d", p.MilliCPUs, f.HostMilliCPUs)
	case len(f.Instance) < 8:
		return job.Errorf(job.CodeInternal, "instance", "an instance id of at least 8 characters is needed")
	}
	return nil
}

// withoutValues turns NAME=value into NAME, which tells the engine to take the image's variable out.
func withoutValues(env []string) []string {
	var names []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		ours := slices.ContainsFunc(initEnv, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if !ours {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func groupPlaces(gid uint32) []string {
	var out []string
	for i := range uint32(GroupPlaces) {
		out = append(out, strconv.FormatUint(uint64(gid+1+i), 10))
	}
	return out
}

func securityOptions(f Facts) []string {
	out := []string{"no-new-privileges", "seccomp=" + f.Seccomp}
	if f.AppArmor {
		out = append(out, "apparmor="+appArmorProfile)
	}
	return out
}

func ulimits(p envelope.Posture) []engine.Ulimit {
	return []engine.Ulimit{
		{Name: "core"},
		{Name: "memlock", Soft: 64 << 10, Hard: 64 << 10},
		{Name: "msgqueue"},
		{Name: "nofile", Soft: softNofile, Hard: max(softNofile, p.Nofile)},
		{Name: "rtprio"},
	}
}
