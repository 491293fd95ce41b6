// Package admission holds the ordered checks a request passes before it becomes a job. A check either lets it on or
// denies it with a stable code; nothing that was not admitted is ever queued.
package admission

import (
	"sandboxd/internal/job"
)

// Request is one request in our own words, decoded and with its syntax known to be sound (types, unknown fields).
// Nil pointers and empty values mean "not asked".
type Request struct {
	Command     []string
	Image       string
	Profile     string
	Role        string
	Skills      []string
	Task        *job.Task
	Env         []job.EnvVar // sorted by name
	Stdin       []byte
	StdinStream bool
	Workdir     string
	Workspace   *job.Workspace
	Mounts      []job.Mount
	Limits      Limits
	TimeoutMS   *int64
	Result      string
	Labels      map[string]string
	Name        string
	Priority    *int
	Lease       bool
	Session     string

	IdempotencyKey string
	BodyHash       string // sha256 of the request's canonical JSON, without the idempotency key

	// What narrows the job below its parent or profile. A nil list inherits, an empty one is none at all.
	Trust       string
	MaxRisk     string
	Tools       Tools
	Model       string
	Mode        string
	Budget      Budget
	Egress      *Egress // nil inherits
	MaxDepth    *int64
	MaxTreeJobs *int64
	MaxTreeLive *int64
	Delegates   []string
	EnvInherit  []string
	Secrets     []string
	Project     *Project
}

// Tools are what the agent of a job may call.
type Tools struct {
	Allow []string // nil inherits, empty allows nothing
	Deny  []string
}

// Budget is what a request asks of each dimension; nil takes a share, 0 and negative values are invalid.
type Budget struct {
	WallMS        *int64
	CPUMS         *int64
	EgressBytes   *int64
	OutputBytes   *int64
	ArtifactBytes *int64
	InputTokens   *int64
	OutputTokens  *int64
	ToolCalls     *int64
	CostMicroUSD  *int64
	Strict        bool   // refuse what would be cut to what is left
	Inherit       string // the operator's to set: anything but "" is refused
}

// Egress is the network policy asked for.
type Egress struct{ Mode string }

// Project is what the file of a workspace asks: a further narrowing, as if the profile were smaller.
type Project struct {
	Limits    Limits
	TimeoutMS *int64
	Budget    Budget
	Trust     string
	MaxRisk   string
	Tools     Tools
}

// Limits are the amounts asked for; nil inherits, 0 and negative values are invalid.
type Limits struct {
	MilliCPUs  *int64
	Memory     *int64
	Pids       *int64
	Nofile     *int64
	TmpBytes   *int64
	HomeBytes  *int64
	OutBytes   *int64
	DiskBytes  *int64
	OutputKeep *int64
}
