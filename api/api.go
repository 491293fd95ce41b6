// Package api is the wire of the daemon: requests, replies, events and error codes as JSON over HTTP/1.1 on a unix
// socket. openapi.yaml in this folder describes it, and a test holds the server to it.
//
// Product identifies the daemon in GET /v1/version, so that a foreign socket is recognised.
package api

// Product is the name the version reply carries.
const Product = "sandboxd"

// Version of the HTTP API; the path prefix is /v1.
const Version = 1

// Bounds of requests.
const (
	MaxRequestBytes = 1 << 20   // body of a job request, without task and stdin
	MaxTaskBytes    = 1 << 20   // goal + context + guidance
	MaxStdinBytes   = 1 << 20   // stdin given in the request; a stream has no bound
	MaxBodyBytes    = 6 << 20   // whole body, after JSON and base64 growth
	MaxArgEnvBytes  = 1 << 20   // argv + env
	MaxStringBytes  = 128 << 10 // one argv or env string
	MaxEnv          = 256       // entries
	MaxLabels       = 64        // entries
	MaxLabelKey     = 63        // characters
	MaxLabelValue   = 255       // characters
	MaxNameLen      = 63        // characters: [a-zA-Z0-9][a-zA-Z0-9_.-]*
	MaxMounts       = 32        // extra read-only inputs
	MaxPathBytes    = 4095
)

// JobRequest asks for one job. The task file of `sbx run` has the same shape.
type JobRequest struct {
	Command        []string          `json:"command" toml:"command"`
	Image          string            `json:"image,omitempty" toml:"image"`
	Profile        string            `json:"profile,omitempty" toml:"profile"`
	Role           string            `json:"role,omitempty" toml:"role"`
	Skills         []string          `json:"skills,omitempty" toml:"skills"`
	Task           *Task             `json:"task,omitempty" toml:"task"`
	Env            map[string]string `json:"env,omitempty" toml:"env"`
	Stdin          []byte            `json:"stdin,omitempty" toml:"-"`        // base64 in JSON
	StdinStream    bool              `json:"stdin_stream,omitempty" toml:"-"` // the client will PUT /v1/jobs/{id}/stdin
	Workdir        string            `json:"workdir,omitempty" toml:"workdir"`
	Workspace      *Workspace        `json:"workspace,omitempty" toml:"workspace"`
	Mounts         []Mount           `json:"mounts,omitempty" toml:"mounts"`
	Limits         *Limits           `json:"limits,omitempty" toml:"limits"`
	Timeout        *Duration         `json:"timeout,omitempty" toml:"timeout"`
	Result         string            `json:"result,omitempty" toml:"result"` // exit (default) | agent
	Labels         map[string]string `json:"labels,omitempty" toml:"labels"`
	Name           string            `json:"name,omitempty" toml:"name"`
	Priority       *int              `json:"priority,omitempty" toml:"priority"`
	Lease          bool              `json:"lease,omitempty" toml:"-"`
	ParentSession  string            `json:"parent_session,omitempty" toml:"parent_session"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" toml:"-"`

	// What narrows the job below its parent or profile; left out, each inherits. An empty list is none at all.
	Trust       string         `json:"trust,omitempty" toml:"trust"`       // trusted | untrusted
	MaxRisk     string         `json:"max_risk,omitempty" toml:"max_risk"` // safe … blocked
	Tools       *Tools         `json:"tools,omitempty" toml:"tools"`
	Model       string         `json:"model,omitempty" toml:"model"`
	Mode        string         `json:"mode,omitempty" toml:"mode"` // single_turn
	Budget      *Budget        `json:"budget,omitempty" toml:"budget"`
	Egress      *Egress        `json:"egress,omitempty" toml:"egress"`
	MaxDepth    *Int           `json:"max_depth,omitempty" toml:"max_depth"`
	MaxTreeJobs *Int           `json:"max_tree_jobs,omitempty" toml:"max_tree_jobs"`
	MaxTreeLive *Int           `json:"max_tree_live,omitempty" toml:"max_tree_live"`
	Delegates   []string       `json:"delegates,omitzero" toml:"delegates"`     // profiles its children may have
	EnvInherit  []string       `json:"env_inherit,omitzero" toml:"env_inherit"` // names it takes over from its parent
	Secrets     []string       `json:"secrets,omitzero" toml:"secrets"`
	Project     *ProjectLimits `json:"project,omitempty" toml:"-"` // of the workspace's ProjectFile
}

// Task is the parent's words, at most MaxTaskBytes in all; a read-only file in the container.
type Task struct {
	Goal     string `json:"goal" toml:"goal"`
	Context  string `json:"context,omitempty" toml:"context"`
	Guidance string `json:"guidance,omitempty" toml:"guidance"`
}

// Workspace is a host tree seen at /workspace.
type Workspace struct {
	Path string `json:"path" toml:"path"`
	Mode string `json:"mode,omitempty" toml:"mode"` // ro (default) | overlay | rw
}

// Mount is an extra read-only input seen at /mnt/<name>.
type Mount struct {
	Source string `json:"source" toml:"source"`
	Name   string `json:"name" toml:"name"`
}

// Limits narrow the job's posture. A pointer left nil inherits; 0 and negative values are invalid. Sizes take a
// number of bytes or text such as "512MiB".
type Limits struct {
	CPUs       *CPUs `json:"cpus,omitempty" toml:"cpus"`
	Memory     *Size `json:"memory,omitempty" toml:"memory"`
	Pids       *Int  `json:"pids,omitempty" toml:"pids"`
	Nofile     *Int  `json:"nofile,omitempty" toml:"nofile"`
	TmpBytes   *Size `json:"tmp_bytes,omitempty" toml:"tmp_bytes"`
	HomeBytes  *Size `json:"home_bytes,omitempty" toml:"home_bytes"`
	OutBytes   *Size `json:"out_bytes,omitempty" toml:"out_bytes"`
	DiskBytes  *Size `json:"disk_bytes,omitempty" toml:"disk_bytes"`
	OutputKeep *Size `json:"output_keep,omitempty" toml:"output_keep"`
}
