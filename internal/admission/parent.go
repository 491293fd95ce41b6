package admission

import (
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// Parent is the job that asks for a child.
type Parent struct {
	Job      job.Job
	Envelope envelope.Envelope
	LeftMS   int64 // of its wall clock
}

// Caps bound the tree of an admitted job, its root included.
type Caps struct{ MaxJobs, MaxLive int }
