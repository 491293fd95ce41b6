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
