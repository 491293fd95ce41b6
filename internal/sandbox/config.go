package sandbox

import (
	"context"
	"io"
	"time"

	"sandboxd/internal/engine"
)

// Engine is what the sandbox needs of the container engine; engine.Docker and enginetest.Fake are it.
type Engine interface {
	Info(ctx context.Context) (engine.Info, error)
	Create(ctx context.Context, c engine.Container) (engine.Created, error)
	Inspect(ctx context.Context, id string) (engine.Container, engine.State, error)
	Start(ctx context.Context, id string) error
	Kill(ctx context.Context, id, signal string) error
	Remove(ctx context.Context, id string) error // by force; one that is gone is no error
	List(ctx context.Context, labels map[string]string) ([]engine.State, error)
	ImageSave(ctx context.Context, id string) (io.ReadCloser, error)
}

// Config is constant after New. Zero fields take the default in their comment; those without one must be set.
type Config struct {
	Instance string // label sandboxd.instance; printable, at least 8 characters
	Epoch    uint64 // boot count of the daemon, from 1; part of the init protocol's proofs

	// RunDir holds <RunDir>/slots/<slot> and <RunDir>/bin. It is made when it is missing; its owner must be root and
	// nobody else may write to it or to a folder above it.
	RunDir string
	// CgroupParent of every container; default "/sandboxd-<instance[:8]>" on cgroupfs, "sandboxd-<instance[:8]>.slice"
	// on systemd.
	CgroupParent string
	// InitPath and SbxPath are the static binaries on the host. Open copies them to <RunDir>/bin as 0111 files of
	// root, and containers get the copies.
	InitPath, SbxPath string

	// The slot uids: UIDCount ids from UIDFirst, a new one every UIDStride (its seven group places lie between).
	UIDFirst  uint32 // default 1900000000
	UIDCount  uint32 // default 65536
	UIDStride uint32 // default 8, and at least that

	// Record is called with the new state of a slot before the step it speaks of is taken (and with what the step
	// gave, after it). A failure aborts the fill. StateGone means that nothing is left and the row can be deleted.
	Record func(ctx context.Context, r SlotRecord) error

	StartTimeout   time.Duration // from start to init's ready; default 20 s
	CleanupTimeout time.Duration // for undoing one fill, and for one Remove; default 30 s

	// Host roots, for tests of the range check; default the real files.
	PasswdFiles []string // default /etc/passwd, /etc/group, /etc/subuid, /etc/subgid
}

// Defaults of a Config.
const (
	DefaultUIDFirst  = 1900000000
	DefaultUIDCount  = 65536
	DefaultUIDStride = 8

	defaultStartTimeout   = 20 * time.Second
	defaultCleanupTimeout = 30 * time.Second
)

// Labels on every container.
const (
	LabelInstance = "sandboxd.instance"
	LabelSlot     = "sandboxd.slot"
	LabelJob      = "sandboxd.job"
)
