// Package config reads the daemon's strict TOML file into typed values. A key that is absent takes its default; an
// unknown, misspelt or duplicate key, a 0 or a value out of bounds is an error that names it.
package config

import (
	"time"

	"sandboxd/internal/envelope"
)

// Config is everything an operator decides.
type Config struct {
	Socket    Socket
	State     State
	Engine    Engine
	Images    Images
	Capacity  Capacity
	Slots     Slots
	Jobs      Jobs
	Workspace Workspace
	Profiles  []envelope.Profile // the one named "default" is always there, and first; then by name
	Ceiling   envelope.Profile   // [limits] as the widest profile of all; every profile is within it
	Log       Log
}

// Socket is where callers come in.
type Socket struct {
	Path         string
	Group        string // its members may connect; empty: root and the daemon's own user only
	AdminGroup   string // its members see every tree; empty: uid 0 only
	MaxConns     int
	MaxConnsUser int // per uid
}

// State is where the daemon keeps what must survive (Dir) and what need not outlive a boot (RunDir).
type State struct {
	Dir, RunDir string
}

// Engine is the container engine.
type Engine struct {
	Host        string // empty: DOCKER_HOST or the local socket
	Runtime     string
	CallTimeout time.Duration
	WarmSlots   int           // containers kept ready for jobs without workspace or mounts; 0 keeps none
	WarmFor     time.Duration // how long one nobody took is kept
}

// Images are what may run.
type Images struct {
	Default string
	Allow   []string // names or ids
	Pull    string   // never | missing | always
}

// Capacity bounds the whole daemon.
type Capacity struct {
	MaxRunning        int
	MaxRunningPerUser int
	MaxQueued         int
	MaxQueuedPerUser  int
	MilliCPUs         int64 // for all running jobs together
	Memory            int64
	MinFreeDisk       int64 // bytes that must stay free below State.Dir
}

// Slots is the range of uids that containers run under.
type Slots struct {
	UIDFirst, UIDCount, UIDStride uint32
}

// Jobs are times and sizes all jobs share.
type Jobs struct {
	LeaseGrace  time.Duration
	CancelGrace time.Duration // upper bound of the finishing window
	Retention   time.Duration
	KeepPerUser int // terminal jobs kept per uid
}

// Workspace says which host trees may be given to jobs.
type Workspace struct {
	Roots []string // empty: directories and files the caller owns
}

// Log is the daemon's own log, on standard error.
type Log struct {
	Level string // debug | info | warn | error
	JSON  bool
}
