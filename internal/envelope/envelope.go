// Package envelope holds everything that bounds a job, the order of every field of it (child ⊑ parent), and the pure
// decision of what a request may have: Narrow. It does no I/O.
package envelope

import (
	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

// Runtimes in the order of strength; a later one is stronger.
const (
	RuntimeRunc  = "runc"
	RuntimeRunsc = "runsc"
)

// Posture is how a job's container is built. Bytes unless said otherwise. Every field but the last two is set; zero is
// invalid there and never means unlimited.
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
	DiskBytes  int64  `json:"disk_bytes,omitempty"` // of the disk behind an overlay workspace; 0: it has none
	Shm        bool   `json:"shm,omitempty"`        // a bounded /dev/shm
}

// Overheads of a container beyond the job's own limits.
const (
	InitMemory = 24 << 20 // bytes
	InitPids   = 32
	// TmpfsReserve is what must stay of a job's memory beside its tmpfs: Σ tmpfs ≤ memory − TmpfsReserve.
	TmpfsReserve = 48 << 20
)

// Origin says where an effective value came from: default, config, profile:NAME, parent:ID, project, request, clamped.
type Origin string

// The origins that carry no name.
const (
	FromDefault Origin = "default"
	FromConfig  Origin = "config"
	FromProject Origin = "project" // the file of a workspace
	FromRequest Origin = "request"
	// Clamped marks an amount that was made smaller to fit: a size nobody set beside a request's memory, a default below
	// an operator's limit, an asked budget above what there is, a workspace mode above what the risk allows.
	Clamped Origin = "clamped"
)

// FromProfile is the origin of what a named profile sets.
func FromProfile(name string) Origin { return Origin("profile:" + name) }

// FromParent is the origin of what a child inherits.
func FromParent(id job.ID) Origin { return Origin("parent:" + id) }

// Envelope is what is frozen on the job at admission.
type Envelope struct {
	Profile string            `json:"profile"`
	Posture Posture           `json:"posture"`
	Origins map[string]Origin `json:"origins"` // by field name of the request, e.g. "memory"
	Bounds
}

// Bounds are what binds a job beside its posture. The zero value is the narrowest there is, and so is a field that a
// stored envelope lacks: no file, no egress, no budget, no child, no word of trust. In a set of names "*" is all of them.
type Bounds struct {
	Mode      string      `json:"mode"`      // single_turn
	Image     string      `json:"image"`     // by name; what runs is Posture.ImageID
	Images    []string    `json:"images"`    // names or ids that children may run beside this one
	Workspace Workspace   `json:"workspace"` // at most; the job's Spec has what was asked
	Mounts    []job.Mount `json:"mounts"`
	Egress    string      `json:"egress"` // none

	Budget        budget.Limits `json:"budget"`         // nil allows nothing; an absent dimension has no limit
	BudgetInherit string        `json:"budget_inherit"` // share | operator; frozen at the root

	Delegates   []string `json:"delegates"`     // profiles that a child may have
	Depth       int64    `json:"depth"`         // edges from the root
	MaxDepth    int64    `json:"max_depth"`     // edges from the root that any job of its tree below it may have
	MaxTreeJobs int64    `json:"max_tree_jobs"` // ever, the root included
	MaxTreeLive int64    `json:"max_tree_live"` // at once, the root included

	Detached    bool  `json:"detached"` // may outlive the connection it was submitted on; shown as lease: no
	RetentionMS int64 `json:"retention_ms"`

	EnvInherit []string `json:"env_inherit"` // names of variables that a child may inherit
	Secrets    []string `json:"secrets"`
	Trust      string   `json:"trust"`
	MaxRisk    string   `json:"max_risk"`
	Tools      Tools    `json:"tools"`
}

// Workspace is the host tree a job may see. An empty path is none, "/" any.
type Workspace struct {
	Path string            `json:"path"`
	Mode job.WorkspaceMode `json:"mode"`
	Git  string            `json:"git"`  // ro | rw, of .git in a rw workspace
	Live bool              `json:"live"` // a bind of the tree itself instead of an overlay of it
}

// Tools are what the agent of a job may call; they are handed to it.
type Tools struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"` // always wins; grows from parent to child
}
