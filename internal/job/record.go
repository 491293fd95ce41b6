package job

import "encoding/json"

// Job is the record of one job. Times are Unix milliseconds of the wall clock, for people; nothing that bounds a
// job reads them.
type Job struct {
	ID       ID       `json:"id"`
	Root     ID       `json:"root"`
	Parent   ID       `json:"parent,omitempty"`
	Depth    int      `json:"depth"`
	Owner    string   `json:"owner"` // principal of the tree: uid:N
	OwnerUID uint32   `json:"owner_uid"`
	OwnerGID uint32   `json:"owner_gid"`
	Groups   []uint32 `json:"groups,omitempty"`

	Spec     Spec            `json:"spec"`
	Envelope json.RawMessage `json:"envelope"` // frozen at admission, shape owned by package envelope

	State   State    `json:"state"`
	Attempt int      `json:"attempt"` // 1; a second one only before the start gate
	Node    string   `json:"node"`
	Epoch   int64    `json:"epoch"` // boot count of the daemon that holds it
	Outcome *Outcome `json:"outcome,omitempty"`
	Result  *Result  `json:"result,omitempty"`
	// CancelReason is set once by the first cancel that was stored; the runner obeys it.
	CancelReason Reason `json:"cancel_reason,omitempty"`
	// CancelKill asks for no grace.
	CancelKill bool `json:"cancel_kill,omitempty"`

	IdempotencyKey string `json:"idempotency_key,omitempty"`
	Times          Times  `json:"times"`

	// Grants are what the job may spend, by budget dimension; one that is absent has no limit. Nil: it has no budget.
	// Clamped are those in which it was granted less than it asked.
	Grants  map[string]int64 `json:"grants,omitempty"`
	Clamped []string         `json:"clamped,omitempty"`
}

// Times are when a job passed its stations, in Unix milliseconds; 0 is "not yet".
type Times struct {
	Queued   int64 `json:"queued"`
	Prepared int64 `json:"prepared,omitempty"` // its slot was ready
	Started  int64 `json:"started,omitempty"`
	Finished int64 `json:"finished,omitempty"`
	Settled  int64 `json:"settled,omitempty"`
}

// Usage is what the daemon measured. Absent (nil) means unavailable, never zero.
type Usage struct {
	WallMS        *int64 `json:"wall_ms,omitempty"`
	ActiveMS      *int64 `json:"active_ms,omitempty"`
	CPUMS         *int64 `json:"cpu_ms,omitempty"`
	MemoryPeak    *int64 `json:"memory_peak,omitempty"` // bytes
	EgressUp      *int64 `json:"egress_up,omitempty"`
	EgressDown    *int64 `json:"egress_down,omitempty"`
	OutputBytes   *int64 `json:"output_bytes,omitempty"`
	ArtifactBytes *int64 `json:"artifact_bytes,omitempty"`
	Children      *int64 `json:"children,omitempty"`
}

// StreamInfo describes the recorded output of a job.
type StreamInfo struct {
	Bytes     int64  `json:"bytes"`            // written by the command, both streams
	Kept      int64  `json:"kept"`             // of those, stored
	SHA256    string `json:"sha256,omitempty"` // of the bytes kept, both streams in stored order
	Stdout    int64  `json:"stdout"`
	Stderr    int64  `json:"stderr"`
	Truncated bool   `json:"truncated,omitempty"`
	Fault     string `json:"fault,omitempty"` // counts or checksums of init and daemon differ: a fault of ours
}

// Denial is one thing that the daemon refused a job while it ran.
type Denial struct {
	Kind   string `json:"kind"` // delegation | egress
	Code   Code   `json:"code"`
	Field  string `json:"field,omitempty"`
	Detail string `json:"detail"`
	TimeMS int64  `json:"time"` // Unix milliseconds
}

// MaxDenials is how many denials a result lists; DenialsTotal counts them all.
const MaxDenials = 20

// Result is what a finished job returned, beside its outcome.
type Result struct {
	Summary          string      `json:"summary"`
	SummaryTruncated bool        `json:"summary_truncated,omitempty"`
	SummaryRunes     int         `json:"summary_runes,omitempty"`
	Denials          []Denial    `json:"denials,omitempty"` // the first MaxDenials
	DenialsTotal     int         `json:"denials_total,omitempty"`
	Delegation       *Delegation `json:"delegation,omitempty"`
	Usage            Usage       `json:"usage"`
	Stream           *StreamInfo `json:"stream,omitempty"`
	Evidence         []string    `json:"evidence,omitempty"` // the engine's and gate's own words, for a job that failed
	// Gate is what the start gate saw of the container; its shape is owned by package sandbox.
	Gate json.RawMessage `json:"gate,omitempty"`
}

// Ended is everything the end of a job commits.
type Ended struct {
	Outcome Outcome
	Result  Result
	Times   Times
	// Measured is what the job itself used, by budget dimension.
	Measured map[string]int64
}

// Disposition says what became of a claimed job when its runner is through with it.
type Disposition int

// The dispositions.
const (
	Settled  Disposition = iota // the terminal record is committed
	Unclaim                     // nothing was handed over; the job may be queued again
	Detached                    // the daemon stops; the job goes on without it
)

// CancelCause is the cause a job's context is cancelled with.
type CancelCause struct {
	Reason Reason
	Kill   bool // no grace
}

func (c *CancelCause) Error() string { return "cancelled: " + string(c.Reason) }
