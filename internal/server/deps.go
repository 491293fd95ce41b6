package server

import (
	"context"
	"encoding/json"
	"io"

	"sandboxd/api"
	"sandboxd/internal/admission"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// Jobs changes jobs. Every method may be called concurrently and returns when ctx is done.
type Jobs interface {
	// Submit admits and stores a job. created is false when the caller's idempotency key already named it.
	Submit(ctx context.Context, c job.Caller, r admission.Request) (j job.Job, created bool, err error)
	// Cancel stores the wish to end a job; it is idempotent, and a later kill strengthens an earlier cancel.
	Cancel(ctx context.Context, c job.Caller, id job.ID, kill bool, reason job.Reason) (job.Job, error)
	// Done returns a channel that is closed once the job is done and stored as such. It is a hint: the server works,
	// slower, when it fires early or never.
	Done(id job.ID) <-chan struct{}
	// Position is a job's place in the queue by age, from 1; 0 when it is not queued.
	Position(id job.ID) int
	// Stdin opens the standard input of a job with a stdin stream; a conflict where it is not running or fed already.
	// Write blocks while the command does not read, and fails when it reads no more. Close delivers the end of input.
	// When ctx ends before Close, writes return and the command sees no end of input: bytes cut off by a broken
	// client must not look complete.
	Stdin(ctx context.Context, id job.ID) (io.WriteCloser, error)
}

// Records is where the server reads jobs and events.
type Records = store.Reader

// StreamOptions say which part of a job's output to copy.
type StreamOptions struct {
	From           uint64 // offset in bytes of both streams together
	Follow         bool   // go on until the stream is complete
	Records        bool   // records of api.StreamType with their end record, not bare bytes
	Stdout, Stderr bool
}

// Streams copies recorded output.
type Streams interface {
	// Copy writes the output of a job to w, at most api.MaxRecord and a header a write, and calls flush whenever it
	// has nothing more to write at once. With Follow it waits for a job that has not started, and returns nil when
	// the stream is complete or the job ended without one. It returns when ctx ends or a write fails. Errors about
	// the options come before the first write.
	Copy(ctx context.Context, id job.ID, w io.Writer, o StreamOptions, flush func()) error
}

// Status tells about the daemon and what it keeps of a job beside the record.
type Status interface {
	Version() api.VersionInfo
	Health(ctx context.Context, c job.Caller) api.Health
	Profiles() []api.Profile
	// Slot returns nil where the job holds no slot.
	Slot(ctx context.Context, id job.ID) (*api.Slot, error)
	EnvelopeFields(envelope json.RawMessage) []api.EnvelopeField
}
