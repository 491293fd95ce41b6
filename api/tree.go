package api

// MaxTreeJobs bounds the jobs in one Tree.
const MaxTreeJobs = 4096

// Tree is GET /v1/jobs/{ref}/tree: a job and all its descendants, each before its own children, siblings by age.
type Tree struct {
	Jobs      []TreeJob `json:"jobs"`
	Truncated bool      `json:"truncated,omitempty"` // there are more than MaxTreeJobs; the oldest are left out
}

// TreeJob is one job of a tree.
type TreeJob struct {
	ID       string       `json:"id"`
	Parent   string       `json:"parent,omitempty"`
	Depth    int          `json:"depth"`    // in the whole tree; 0 for its root
	Children int          `json:"children"` // its own, without their descendants
	Name     string       `json:"name,omitempty"`
	Profile  string       `json:"profile"`
	State    string       `json:"state"`
	Outcome  *Outcome     `json:"outcome,omitempty"`
	Budget   []BudgetLine `json:"budget,omitempty"`
	Timings  Timings      `json:"timings"`
}

// BudgetLine is what a job with its descendants may spend of one dimension, in its unit: milliseconds, bytes, a count,
// or millionths of a US dollar.
type BudgetLine struct {
	Dimension string `json:"dimension"`       // wall_ms, cpu_ms, egress_bytes, …
	Limit     *int64 `json:"limit,omitempty"` // absent: nothing bounds it here
	Spent     int64  `json:"spent"`
	Granted   int64  `json:"granted"`        // reserved for children that have not ended
	Left      *int64 `json:"left,omitempty"` // limit − spent − granted, never below 0
}

// Denial is one thing that the daemon refused a job while it ran.
type Denial struct {
	Kind   string `json:"kind"` // delegation | egress
	Code   string `json:"code"`
	Field  string `json:"field,omitempty"`
	Detail string `json:"detail"`
	Time   int64  `json:"time"` // Unix milliseconds
}

// Scopes of a freeze.
const (
	FreezeAll     = "all"
	FreezeProfile = "profile"
	FreezeTree    = "tree"
)

// FreezeRequest is the body of POST /v1/freeze and POST /v1/thaw.
type FreezeRequest struct {
	Scope string `json:"scope"`          // all | profile | tree
	Name  string `json:"name,omitempty"` // the profile, or any job of the tree; absent for all
}

// Freeze is one order of an operator that nothing more starts within its scope.
type Freeze struct {
	Scope string `json:"scope"`
	Name  string `json:"name,omitempty"` // the profile, or the id of the tree's root
	By    string `json:"by,omitempty"`
	Since int64  `json:"since,omitempty"` // Unix milliseconds
}

// FreezeList is GET /v1/freeze, and the reply to a freeze and a thaw.
type FreezeList struct {
	Freezes []Freeze `json:"freezes"`
}
