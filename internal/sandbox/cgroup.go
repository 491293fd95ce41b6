package sandbox

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// hierarchy is where the host mounts its cgroups.
type hierarchy struct {
	version int
	mounts  map[string]string // controller → mount point; version 2 has the one controller ""
}

// controllers in which a container's and its job's cgroup are kept apart.
func (h hierarchy) controllers() []string {
	if h.version == 2 {
		return []string{""}
	}
	return []string{"cpu", "cpuacct", "freezer", "memory", "pids"}
}

// readHierarchy finds the mounts in the host's mountinfo.
func readHierarchy(version int, mounts []mountLine) (hierarchy, error) {
	h := hierarchy{version: version, mounts: map[string]string{}}
	for _, m := range mounts {
		switch {
		case m.root != "/":
		case m.fstype == "cgroup2" && version == 2:
			h.mounts[""] = m.target
		case m.fstype == "cgroup" && version == 1:
			for name := range m.super {
				if _, ok := h.mounts[name]; !ok {
					h.mounts[name] = m.target
				}
			}
		}
	}
	for _, c := range h.controllers() {
		if h.mounts[c] == "" {
			return h, fmt.Errorf("cgroup v%d: controller %q is not mounted: %w; jobs could not be bounded", version, c, ErrNotSupported)
		}
	}
	return h, nil
}

// Names of the two leaves below a container's cgroup. The first is needed on version 2 only, where a cgroup with
// children can hold no process.
const (
	initLeaf = "init"
	jobLeaf  = "job"
)

// containerDirs are the directories of a container's cgroup by controller, from the paths its init is in.
func (h hierarchy) containerDirs(paths map[string]string, parent, containerID string) (map[string]string, error) {
	dirs := map[string]string{}
	for _, c := range h.controllers() {
		p, ok := paths[c]
		if h.version == 2 && path.Base(p) == initLeaf {
			p = path.Dir(p)
		}
		if !ok || !isCgroupOf(p, parent, containerID) {
			return nil, fmt.Errorf("cgroup %s:%s is not below %s or not of container %.12s", c, p, parent, containerID)
		}
		dirs[c] = filepath.Join(h.mounts[c], p)
	}
	return dirs, nil
}

// isCgroupOf knows both drivers: /parent/<id>, and /…parent.slice/docker-<id>.scope.
func isCgroupOf(p, parent, containerID string) bool {
	dir, base := path.Split(p)
	if strings.HasSuffix(parent, ".slice") {
		return base == "docker-"+containerID+".scope" && path.Base(dir) == parent
	}
	return base == containerID && path.Clean(dir) == path.Clean("/"+parent)
}

// knob is one file that holds a limit.
type knob struct {
	controller, file, value string
	mayLack                 bool // an older kernel, or one without swap accounting, has no such file
}

func (k knob) any() bool { return true }

// ofEngine: the engine sets it too.
func (k knob) ofEngine() bool { return k.file != "memory.kmem.tcp.limit_in_bytes" }

// ofJob: it keeps its value after a kill, which sets the pids of the job to 0.
func (k knob) ofJob() bool { return k.file != "pids.max" }

const cpuPeriod = 100_000 // µs

// knobs are the files of limits, in an order in which they can be lowered.
func (h hierarchy) knobs(l limits) []knob {
	quota := strconv.FormatInt(l.milliCPUs*cpuPeriod/1000, 10)
	memory := strconv.FormatInt(l.memory&^(pageSize-1), 10)
	pids := strconv.FormatInt(l.pids, 10)
	if h.version == 2 {
		return []knob{
			{file: "cpu.max", value: quota + " " + strconv.Itoa(cpuPeriod)},
			{file: "memory.max", value: memory},
			{file: "memory.swap.max", value: "0", mayLack: true},
			{file: "pids.max", value: pids},
		}
	}
	return []knob{
		{"cpu", "cpu.cfs_period_us", strconv.Itoa(cpuPeriod), false},
		{"cpu", "cpu.cfs_quota_us", quota, false},
		{"memory", "memory.limit_in_bytes", memory, false},
		{"memory", "memory.memsw.limit_in_bytes", memory, true},
		// Socket buffers are counted apart on version 1: 300 full loopback connections held 2.2 GiB outside a limit.
		{"memory", "memory.kmem.tcp.limit_in_bytes", strconv.FormatInt(l.tcpMemory()&^(pageSize-1), 10), true},
		{"pids", "pids.max", pids, false},
	}
}

// deviceLines are all lines the devices cgroup of a container may have: the runtime's own list, of devices that are
// harmless or do not exist in a container, and the right to make nodes, which needs a capability.
var deviceLines = []string{
	"b *:* m", "c *:* m",
	"c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm",
	"c 5:0 rwm", "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm", "c 10:200 rwm",
}

func deviceFindings(list string) []string {
	var out []string
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); !slices.Contains(deviceLines, line) {
			out = append(out, "devices cgroup: unexpected "+strconv.Quote(line))
		}
	}
	return out
}

// placeFindings: init must be in the container's own cgroup (on version 2 its leaf), the stub in the job's.
func (c *cgroups) placeFindings(who string, in map[string]string) []string {
	var out []string
	for _, controller := range c.h.controllers() {
		want := c.container[controller]
		switch {
		case c.two && who == "stub":
			want = filepath.Join(want, jobLeaf)
		case c.two && c.h.version == 2:
			want = filepath.Join(want, initLeaf)
		}
		if got := filepath.Join(c.h.mounts[controller], in[controller]); got != want {
			out = append(out, fmt.Sprintf("%s cgroup %s: want %s, got %s", who, controller, want, got))
		}
	}
	return out
}
