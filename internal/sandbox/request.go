package sandbox

import (
	"time"

	"sandboxd/internal/engine"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// Request asks for one slot.
type Request struct {
	Slot    string // name of the slot, [a-z0-9]{8,32}; NewSlotName makes one
	Job     job.ID
	Attempt int
	Posture envelope.Posture
	Image   engine.Image // as ImageInspect gave it; its ID must be the posture's
	// Binds are mounted read-only at /workspace, /data/<name> or /mnt/<name>. The caller has opened and verified the
	// sources; they are absolute and clean.
	Binds []Bind
	// Files are put into the slot's directory (root:slot gid, 0440) and show at /sbx/slot/<name>; at most 32 of
	// 1 MiB, names as for slots with ._- allowed inside.
	Files map[string][]byte
}

// Bind is one mount of a host path, always read-only.
type Bind struct {
	Source, Target string
	// Dev and Ino are what must show at the target in the container; zero where nobody knows.
	Dev, Ino uint64
}

// Readings are what the job has used so far, init not counted. Where the slot has no cgroup of its own for the job
// they are the container's.
type Readings struct {
	At         time.Time
	CPU        time.Duration
	Memory     int64 // rss + shmem now, bytes
	MemoryPeak int64 // the largest of all readings of this slot
	Sockets    int64 // kernel memory that sockets hold beside Memory, where the cgroup does not count it: TCP on version 1, netlink
	OOMKills   int64 // processes the kernel killed for the job's memory limit
	Pids       int64
}

// Paths inside every container.
const (
	PathInit      = "/sbx/bin/sbx-init"
	PathSbx       = "/sbx/bin/sbx"
	PathSlot      = "/sbx/slot" // the slot's directory: socket and files
	PathWorkspace = "/workspace"
	PathHome      = "/home/job"
	PathTmp       = "/tmp"
	PathOut       = "/out"
	PathRun       = "/run"
	PathData      = "/data" // mounts below it
	PathMnt       = "/mnt"  // mounts below it

	// SocketName is init's socket in the slot's directory.
	SocketName = "init.sock"
	// JobSocketName is a delegating job's socket to the daemon, in the slot's directory.
	JobSocketName = "api.sock"
	// Hostname of every container.
	Hostname = "sandbox"
)
