// Package envelope holds everything that bounds a job (posture, timeout, limits) and the pure decision of what a
// request may have of it. It does no I/O.
package envelope

// Runtimes in the order of strength; a later one is stronger.
const (
	RuntimeRunc  = "runc"
	RuntimeRunsc = "runsc"
)

// Posture is how a job's container is built. Bytes unless said otherwise. Every field is set; zero is invalid and
// never means unlimited.
type Posture struct {
	ImageID    string `json:"image_id"`
	Runtime    string `json:"runtime"`
	MilliCPUs  int64  `json:"milli_cpus"` // thousandths of a core
	Memory     int64  `json:"memory"`     // the job's own; the container gets InitMemory more
	Pids       int64  `json:"pids"`       // the job's own; the container gets InitPids more
	Nofile     int64  `json:"nofile"`
	TmpBytes   int64  `json:"tmp_bytes"`  // /tmp
	HomeBytes  int64  `json:"home_bytes"` // /home/job
	OutBytes   int64  `json:"out_bytes"`  // /out
	Inodes     int64  `json:"inodes"`     // of each tmpfs
	HomeExec   bool   `json:"home_exec"`
	OutputKeep int64  `json:"output_keep"` // stored stream, record headers included
	TimeoutMS  int64  `json:"timeout_ms"`
}

// Overheads of a container beyond the job's own limits.
const (
	InitMemory = 24 << 20 // bytes
	InitPids   = 32
	// TmpfsReserve is what must stay of a job's memory beside its tmpfs: Σ tmpfs ≤ memory − TmpfsReserve.
	TmpfsReserve = 48 << 20
)

// Origin says where an effective value came from: default, config, profile:NAME, request, clamped.
type Origin string

// The origins that carry no name.
const (
	FromDefault Origin = "default"
	FromConfig  Origin = "config"
	FromRequest Origin = "request"
	// Clamped marks an amount nobody set that was made smaller to fit beside one that was: a size beside a request's
	// memory, a default below an operator's limit.
	Clamped Origin = "clamped"
)

// Envelope is what is frozen on the job at admission.
type Envelope struct {
	Profile string            `json:"profile"`
	Posture Posture           `json:"posture"`
	Origins map[string]Origin `json:"origins"` // by field name of the request, e.g. "memory"
}

// Profile is an operator's named envelope: what a job gets where it asks nothing, and the most it may ask.
type Profile struct {
	Name        string
	Description string
	Default     Posture
	Limit       Posture
	Origins     map[string]Origin // of the defaults
}
