// Package engine is the only room that talks to the container engine (Docker) and the only importer of its SDK.
// It speaks in the plain types below and in typed errors; enginetest holds a fake with scripted faults and the
// conformance suite both implementations pass.
package engine

import (
	"math"
	"time"
)

// Container is the full configuration of one container, in words of our own. Every field is sent; a zero means
// what its comment says and never "the engine's default".
type Container struct {
	Name       string
	Image      string // image id (sha256:…), never a name
	Runtime    string // OCI runtime by name
	Entrypoint []string
	Cmd        []string
	Env        []string
	WorkingDir string
	Hostname   string
	User       string   // numeric uid:gid
	Groups     []string // numeric supplementary groups
	Labels     map[string]string
	StopSignal string

	ReadonlyRootfs bool
	CapDrop        []string
	CapAdd         []string
	SecurityOpt    []string // whole options, the seccomp JSON inline
	MaskedPaths    []string // nil is refused: it would mean the engine's default
	ReadonlyPaths  []string // nil is refused
	NetworkMode    string
	IpcMode        string
	CgroupnsMode   string
	CgroupParent   string
	PidMode        string // always empty; a field so that an inspection can prove it
	UTSMode        string
	UsernsMode     string
	DNS            []string
	DNSSearch      []string
	DNSOptions     []string
	ExtraHosts     []string

	Memory      int64 // bytes; equal to MemorySwap
	MemorySwap  int64
	NanoCPUs    int64
	PidsLimit   int64
	OomScoreAdj int
	ShmSize     int64 // bytes
	Ulimits     []Ulimit
	Tmpfs       map[string]string // target → options
	Binds       []Bind
	// Volumes shadowed or declared by the image must be covered by Tmpfs; Create refuses a container that would
	// get an anonymous volume.

	// What must be off. They exist so that an inspection can be compared; Create refuses anything but the zero value.
	Privileged      bool
	PublishAllPorts bool
	AutoRemove      bool
	Tty             bool
	OpenStdin       bool
	Init            bool
	Devices         int // number of devices, device requests and cgroup device rules
	Sysctls         int
	PortBindings    int
	VolumesFrom     int
	Links           int
	Volumes         int // anonymous or named volumes found by an inspection
	Healthcheck     bool
	RestartPolicy   string // "no"
	LogDriver       string // "none"
	// Others are settings an inspection found that no field above speaks of, as "HostConfig.CpusetCpus=0"; sorted.
	Others []string
}

// Unlimited is what an inspection says for a limit the engine does not hold, whether it wrote 0, -1 or null.
const Unlimited = math.MaxInt64

// Ulimit is one resource limit, soft equal to hard unless both are given (so a soft limit of 0 below another hard one
// cannot be said).
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// Bind is one bind mount at creation. The source must exist; the engine never creates it.
type Bind struct {
	Source, Target string
	ReadOnly       bool
	Propagation    string // private
}

// Info is what the engine says of itself.
type Info struct {
	Version       string
	APIVersion    string // negotiated
	CgroupDriver  string // cgroupfs | systemd
	CgroupVersion int    // 1 | 2
	Runtimes      []string
	DefaultRT     string
	SecurityOpts  []string // raw, e.g. "name=seccomp,profile=default", "name=apparmor"
	StorageDriver string
	RootDir       string
	LiveRestore   bool
	OSType, Arch  string
}

// State is where a container stands, as the engine reports it. A list fills ID, Name, Status, Labels and Image only.
type State struct {
	ID         string
	Name       string
	Status     string // created | running | paused | restarting | removing | exited | dead
	Pid        int    // host pid of its init; 0 when not running
	ExitCode   int
	OOMKilled  bool
	Error      string // why the last start or removal failed, one line
	StartedAt  time.Time
	FinishedAt time.Time
	Labels     map[string]string
	Image      string // image id
}

// Created is the answer to a create.
type Created struct {
	ID       string
	Warnings []string
}

// Image is what the engine knows of one image.
type Image struct {
	ID          string // sha256 of its configuration
	RepoTags    []string
	RepoDigests []string
	OS, Arch    string
	Size        int64
	Volumes     []string
	Env         []string
	User        string
	WorkingDir  string
	Entrypoint  []string
	Cmd         []string
	Healthcheck bool
	Labels      map[string]string
	Layers      int
}

// Event is a hint that something happened to a container. Hints may be lost; only Inspect and List tell what is true.
type Event struct {
	ID, Name string
	Action   Action
	ExitCode int // of a die
	At       time.Time
	Labels   map[string]string
}

// Action is what happened to a container.
type Action string

// The actions Events reports.
const (
	Died      Action = "die"
	OutOfMem  Action = "oom" // some process of the container was killed; it may live on
	Destroyed Action = "destroy"
)
