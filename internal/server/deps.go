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

// Accounts tells what the ledger keeps of a job beside its record.
type Accounts interface {
	// Budget returns the lines of these jobs; one that has none may be left out.
	Budget(ctx context.Context, ids []job.ID) (map[job.ID][]api.BudgetLine, error)
	// Denials returns the first of what was refused a job that has not ended, and how many there were.
	Denials(ctx context.Context, id job.ID) (first []job.Denial, total int, err error)
}

// Freezer keeps what an operator has frozen. The server asks it for admins on the host socket only, with a scope of
// api.FreezeAll (and no name), api.FreezeProfile, or api.FreezeTree with the id of the tree's root. Freezing what is
// frozen and thawing what is not change nothing.
type Freezer interface {
	Freeze(ctx context.Context, c job.Caller, scope, name string) error
	Thaw(ctx context.Context, c job.Caller, scope, name string) error
	Frozen(ctx context.Context) ([]api.Freeze, error)
}

// Waiter is told when a job blocks on a descendant of its own that has not ended, so that its place may be lent.
type Waiter interface {
	// Wait is called before the caller blocks, and it blocks no longer than the context returned, which ends with ctx or
	// with a *job.Error as its cause where the wait is denied. release is called once, before the caller is answered, and
	// returns when it has its place again or ctx has ended.
	Wait(ctx context.Context, c job.Caller, on job.ID) (blocked context.Context, release func())
}
