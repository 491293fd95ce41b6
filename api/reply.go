package api

// Job is a job as a caller sees it.
type Job struct {
	ID            string            `json:"id"`
	Root          string            `json:"root"`
	Parent        string            `json:"parent,omitempty"`
	Depth         int               `json:"depth"`
	Owner         string            `json:"owner"`
	Name          string            `json:"name,omitempty"`
	Command       []string          `json:"command"`
	Image         string            `json:"image"`
	ImageID       string            `json:"image_id"`
	Profile       string            `json:"profile"`
	Role          string            `json:"role,omitempty"`
	Skills        []string          `json:"skills,omitempty"`
	State         string            `json:"state"`
	Priority      int               `json:"priority"`
	Labels        map[string]string `json:"labels,omitempty"`
	Stdin         string            `json:"stdin,omitempty"` // bytes | stream
	Result        string            `json:"result"`          // exit | agent
	Lease         bool              `json:"lease,omitempty"`
	ParentSession string            `json:"parent_session,omitempty"`
	Workspace     *Workspace        `json:"workspace,omitempty"`
	Mounts        []Mount           `json:"mounts,omitempty"`
	Workdir       string            `json:"workdir"`
	Timings       Timings           `json:"timings"`
	Outcome       *Outcome          `json:"outcome,omitempty"`
	// Only in GET /v1/jobs/{id}:
	EnvNames   []string        `json:"env_names,omitempty"` // values are never shown
	Envelope   []EnvelopeField `json:"envelope,omitempty"`
	Cancelling string          `json:"cancelling,omitempty"` // reason of a stored cancel
	Slot       *Slot           `json:"slot,omitempty"`
	Position   int             `json:"position,omitempty"` // in the queue, from 1

	Trust        string       `json:"trust,omitempty"`
	MaxRisk      string       `json:"max_risk,omitempty"`
	Delegation   *Delegation  `json:"delegation,omitempty"`
	Budget       []BudgetLine `json:"budget,omitempty"`
	Denials      []Denial     `json:"denials,omitempty"` // the first of DenialsTotal
	DenialsTotal int          `json:"denials_total,omitempty"`
}

// EnvelopeField is one effective value with its origin.
type EnvelopeField struct {
	Field  string `json:"field"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Slot tells where a job runs and what the start gate found.
type Slot struct {
	ID          string `json:"id"`
	ContainerID string `json:"container_id,omitempty"`
	UID         uint32 `json:"uid"`
	State       string `json:"state"`
	Evidence    any    `json:"evidence,omitempty"`
	Error       string `json:"error,omitempty"`
}

// Timings are Unix milliseconds; absent means not yet.
type Timings struct {
	Queued   int64 `json:"queued,omitempty"`
	Prepared int64 `json:"prepared,omitempty"`
	Started  int64 `json:"started,omitempty"`
	Finished int64 `json:"finished,omitempty"`
	Settled  int64 `json:"settled,omitempty"`
}

// Outcome is how a job ended.
type Outcome struct {
	Status        string `json:"status"`
	Reason        string `json:"reason,omitempty"`
	Detail        string `json:"detail,omitempty"`
	ClaimedStatus string `json:"claimed_status,omitempty"`
	ExitCode      *int   `json:"exit_code,omitempty"`
	Signal        int    `json:"signal,omitempty"`
	SignalName    string `json:"signal_name,omitempty"`
	OOMKilled     bool   `json:"oom_killed,omitempty"`
	TimedOut      bool   `json:"timed_out,omitempty"`
	KilledBy      string `json:"killed_by,omitempty"`
	LeftKilled    int    `json:"left_killed,omitempty"`
	// RunExit and StatusExit are what `sbx run` and `sbx run --exit-status` end with.
	RunExit    int `json:"run_exit"`
	StatusExit int `json:"status_exit"`
}

// ResultSchema names the shape of Result.
const ResultSchema = "sandboxd.result/v1"

// Result is the whole account of a finished job.
type Result struct {
	Schema        string `json:"schema"`
	Job           string `json:"job"`
	Parent        string `json:"parent,omitempty"`
	Root          string `json:"root"`
	ParentSession string `json:"parent_session,omitempty"`
	Outcome
	Summary          string      `json:"summary"`
	SummaryTruncated bool        `json:"summary_truncated,omitempty"`
	SummaryRunes     int         `json:"summary_runes,omitempty"`
	Denials          []Denial    `json:"denials,omitempty"` // the first of DenialsTotal
	DenialsTotal     int         `json:"denials_total,omitempty"`
	Delegation       *Delegation `json:"delegation,omitempty"`
	Usage            Usage       `json:"usage"`
	Timings          Timings     `json:"timings"`
	Stream           *Stream     `json:"stream,omitempty"`
	Evidence         []string    `json:"evidence,omitempty"`
}

// Delegation is inert provenance.
type Delegation struct {
	Role   string   `json:"role,omitempty"`
	Skills []string `json:"skills,omitempty"`
	Source string   `json:"source,omitempty"`
}

// Usage is what the daemon measured; absent means unavailable, never zero.
type Usage struct {
	WallMS        *int64 `json:"wall_ms,omitempty"`
	ActiveMS      *int64 `json:"active_ms,omitempty"`
	CPUMS         *int64 `json:"cpu_ms,omitempty"`
	MemoryPeak    *int64 `json:"memory_peak,omitempty"`
	EgressUp      *int64 `json:"egress_up,omitempty"`
	EgressDown    *int64 `json:"egress_down,omitempty"`
	OutputBytes   *int64 `json:"output_bytes,omitempty"`
	ArtifactBytes *int64 `json:"artifact_bytes,omitempty"`
	Children      *int64 `json:"children,omitempty"`
}

// Stream describes the recorded output.
type Stream struct {
	Bytes     int64  `json:"bytes"`
	Kept      int64  `json:"kept"`
	SHA256    string `json:"sha256,omitempty"`
	Stdout    int64  `json:"stdout"`
	Stderr    int64  `json:"stderr"`
	Truncated bool   `json:"truncated,omitempty"`
	Fault     string `json:"fault,omitempty"`
}

// JobList is GET /v1/jobs. Next is the id to pass as ?before= for the next page, empty at the end.
type JobList struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty"`
}

// CancelRequest is the body of POST /v1/jobs/{id}/cancel; an empty body is a cancel with grace.
type CancelRequest struct {
	Kill bool `json:"kill,omitempty"`
}

// Event is one line of GET /v1/events.
type Event struct {
	Seq     int64             `json:"seq"`
	Time    int64             `json:"time"` // Unix milliseconds
	Job     string            `json:"job"`
	Root    string            `json:"root"`
	Type    string            `json:"type"`
	Payload map[string]string `json:"payload,omitempty"`
}

// VersionInfo is GET /v1/version.
type VersionInfo struct {
	Product  string `json:"product"`
	Version  string `json:"version"`
	API      int    `json:"api"`
	Instance string `json:"instance"`
}

// Health is GET /v1/health.
type Health struct {
	Status     string         `json:"status"` // ok | degraded | draining
	Engine     EngineHealth   `json:"engine"`
	Running    int            `json:"running"`
	MaxRunning int            `json:"max_running"`
	Queued     int            `json:"queued"`
	Jobs       map[string]int `json:"jobs"` // the caller's jobs that are not done, by state
	Cleanups   int            `json:"cleanups_pending"`
	UptimeMS   int64          `json:"uptime_ms"`
	Notes      []string       `json:"notes,omitempty"` // fallbacks in use, each one line
}

// EngineHealth says whether the engine answers.
type EngineHealth struct {
	Up      bool   `json:"up"`
	Version string `json:"version,omitempty"`
	API     string `json:"api,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Profile is one entry of GET /v1/profiles.
type Profile struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Fields      []EnvelopeField `json:"fields"`
}

// ProfileList is GET /v1/profiles.
type ProfileList struct {
	Profiles []Profile `json:"profiles"`
}

// ProblemType is the media type of errors.
const ProblemType = "application/problem+json"

// Problem is an error reply (RFC 9457) with our stable code.
type Problem struct {
	Title      string      `json:"title"`
	Status     int         `json:"status"`
	Code       string      `json:"code"`
	Field      string      `json:"field,omitempty"`
	Detail     string      `json:"detail"`
	Hint       string      `json:"hint,omitempty"`
	Violations []Violation `json:"violations,omitempty"`
	ExitCode   int         `json:"exit_code"` // what `sbx run` ends with
}

// Violation is one field that asked for more than allowed.
type Violation struct {
	Field   string `json:"field"`
	Asked   string `json:"asked"`
	Allowed string `json:"allowed"`
	Why     string `json:"why,omitempty"`
}
