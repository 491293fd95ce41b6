// Package store keeps what must survive: the Ledger (jobs, events, idempotency keys) and the NodeState (slots,
// cleanup, run journal) in one SQLite file with one writer, group commit and many readers. No transaction touches
// both. The interfaces speak in decisions, not rows; no *sql.Tx leaves the room.
package store

import (
	"context"

	"sandboxd/internal/job"
)

// Ledger is what all nodes of an installation would share. ledgertest holds its conformance suite.
type Ledger interface {
	// Admit stores a queued job durably before it returns, with its event and idempotency key, counted into its tree and
	// with its grant taken out of its parent's budget: all or nothing. created is false when the same caller's key already
	// named a job: that job is returned, or a conflict when the body differs. A job gets children while it is
	// running or waiting, and none any more once it or one above it has a cancel stored.
	Admit(ctx context.Context, a Admission) (j job.Job, created bool, err error)
	// Claim moves a queued job to starting for this node and epoch and returns it whole; ErrFenced when it is not
	// queued any more.
	Claim(ctx context.Context, id job.ID, c Claim) (job.Job, error)
	// Move makes one transition guarded by id, attempt and from-state. No row changed means ErrFenced; a transition
	// that is not legal is a *job.TransitionError. starting → queued is "unclaim": the job waits again in its old
	// place, for its next attempt (attempt + 1, its slot and start times forgotten) and past the bounds of the queue;
	// one whose cancel was stored meanwhile ends as cancelled instead. To starting only Claim leads, to done only
	// Finish and Cancel.
	Move(ctx context.Context, m Move) error
	// Finish moves a job to done with its outcome and result, and settles its budget, once; ErrFenced when it already was,
	// ErrLiveChildren while jobs below it are not done. Times must say when it finished or settled.
	Finish(ctx context.Context, f Finish) error
	// Cancel stores the first wish to cancel a job; a queued job is finished at once (ended reports so), its grant
	// refunded. The first reason stays; a later Kill strengthens it. A job that is done is returned as it is. Once a cancel
	// is stored nothing is admitted below the job.
	Cancel(ctx context.Context, id job.ID, c Cancel) (j job.Job, ended bool, err error)
	Reader
	Trees
}

// Reader is the read side, on its own connections.
type Reader interface {
	// Job returns a job whole, with the Spec as it was admitted; code not_found where there is none. The other reads
	// leave out the parts of a Spec that may be large: StdinData, Task and Env.
	Job(ctx context.Context, id job.ID) (job.Job, error)
	// Resolve finds the one job of this viewer whose id starts with prefix or whose name is exactly ref: an error
	// with code not_found or, with the candidates named, invalid when several match. The newest wins among equal names.
	Resolve(ctx context.Context, v Viewer, ref string) (job.Job, error)
	// Jobs lists, newest first. A page may hold fewer than Limit jobs where they are large (8 MiB in all); only an
	// empty page means that there are no more.
	Jobs(ctx context.Context, v Viewer, f Filter) ([]job.Job, error)
	// Queued returns the queue of this node in order of age, without stdin data or task.
	Queued(ctx context.Context) ([]QueueItem, error)
	// Unfinished returns the jobs of a node that are starting … finishing.
	Unfinished(ctx context.Context, node string) ([]job.Job, error)
	// Events returns events with a number above after, in order; limit ≤ 1000, 0 means 100. For a viewer of all, Seq is
	// the number among the events of all owners; for a job it is the number within its tree, with gaps where the event
	// is not its own or a descendant's.
	Events(ctx context.Context, v Viewer, after int64, limit int) ([]Event, error)
	Counts(ctx context.Context) (Counts, error)
}

// Viewer bounds what a read may see: the trees of one principal, or all for an admin. One with Job set sees that job
// and its descendants and nothing else, whatever the other fields say. The zero Viewer sees nothing.
type Viewer struct {
	Principal string
	All       bool
	Job       job.ID
}

// ViewerOf is what a caller may see.
func ViewerOf(c job.Caller) Viewer {
	if c.Job != "" {
		return Viewer{Job: c.Job}
	}
	return Viewer{Principal: c.Principal, All: c.Admin}
}

// Admission is everything one admitted request writes.
type Admission struct {
	Job      job.Job
	BodyHash string // sha256 of the canonical request, compared under the same idempotency key
	// Bounds are rechecked inside the transaction; 0 is invalid.
	MaxQueued, MaxQueuedPerUID int
	// MaxQueuedBytesPerUID bounds the requests of a uid that wait, stdin data and task included; absent (0) means
	// DefaultQueuedBytesPerUID.
	MaxQueuedBytesPerUID int64
	Caps                 TreeCaps
	Budget               *BudgetAsk // nil: the tree has no budget
}

// DefaultQueuedBytesPerUID is 256 MiB.
const DefaultQueuedBytesPerUID = 256 << 20

// Claim names the claimer.
type Claim struct {
	Node  string
	Epoch int64
	NowMS int64
}

// Move is one transition, with the times and event it sets.
type Move struct {
	ID       job.ID
	Attempt  int
	From, To job.State
	NowMS    int64
	Prepared int64 // when its slot was ready; 0 leaves what is stored
}

// Finish ends a job.
type Finish struct {
	ID      job.ID
	Attempt int
	From    job.State
	Outcome job.Outcome
	Result  job.Result
	Times   job.Times // zero fields leave what is stored; a job whose Started stays 0 never started and has spent nothing
	// Measured is what the job itself used, by budget dimension. What is negative or of no known dimension counts as not
	// given. A reserved dimension that is not given counts as spent whole; a ceiling or the wall clock as not spent.
	Measured map[string]int64
	// Reported says that Measured holds the agent's authenticated report, which alone counts for tokens, tool calls and
	// cost. Without it they count as not spent, or with ChargeUnreported (for jobs that had to report) as spent whole.
	Reported         bool
	ChargeUnreported bool
}

// Cancel is a stored wish.
type Cancel struct {
	Reason job.Reason
	Kill   bool // no grace; a later Kill strengthens an earlier cancel
	By     string
	NowMS  int64
}

// Filter narrows a listing; zero fields do not filter.
type Filter struct {
	States []job.State
	Labels map[string]string
	Name   string
	Root   job.ID
	Parent job.ID
	Limit  int    // ≤ 1000; 0 means 100
	Before job.ID // older than this one, for paging (newest first)
}

// QueueItem is what the scheduler needs of a queued job.
type QueueItem struct {
	ID        job.ID
	Root      job.ID
	OwnerUID  uint32
	Priority  int
	MilliCPUs int64
	Memory    int64
	Attempt   int
}

// Event is one entry of the ordered record of what happened. Seq grows by one per owner, so that numbers reveal
// nothing of other callers. A job gets numbers of its tree instead.
type Event struct {
	Seq     int64             `json:"seq"` // without gaps; the oldest are forgotten in time
	Owner   string            `json:"-"`
	TimeMS  int64             `json:"time"`
	Job     job.ID            `json:"job"`
	Root    job.ID            `json:"root"`
	Type    string            `json:"type"` // queued, starting, running, …, done, cancel_requested, denied
	Payload map[string]string `json:"payload,omitempty"`
}

// Counts are totals for status pages and metrics.
type Counts struct {
	ByState map[job.State]int
	Total   int
}

// NodeState is what only this node knows.
type NodeState interface {
	// Boot increments and returns the boot count of the instance.
	Boot(ctx context.Context) (epoch int64, err error)
	// Instance returns the stable random id of this state directory, made on first use.
	Instance(ctx context.Context) (string, error)
	// PutSlot records an intent or the present state of a slot before the step it speaks of.
	PutSlot(ctx context.Context, s Slot) error
	// DeleteSlot forgets a slot whose every resource is gone.
	DeleteSlot(ctx context.Context, id string) error
	Slots(ctx context.Context) ([]Slot, error)
	// Journal appends one line of the run journal of a job (handed_over, result_committed, …).
	Journal(ctx context.Context, id job.ID, attempt int, step string, nowMS int64) error
	// Journaled reports whether that step was journaled.
	Journaled(ctx context.Context, id job.ID, attempt int, step string) (bool, error)
}

// Slot is the row behind a container of ours. Nothing without such a row and our label is ever touched.
type Slot struct {
	ID          string // random, also in the container's name and label
	State       string // intent, created, started, ready, taken, cleanup_pending, quarantined
	UID         uint32
	ContainerID string
	Job         job.ID // empty while unassigned
	Attempt     int
	Dir         string // run directory of the slot
	Key         []byte // of the init protocol
	Evidence    []byte // JSON of the start gate's findings
	Error       string // last cleanup error
	Tries       int    // of cleanup
	UpdatedMS   int64
}
