package sandbox

import "sandboxd/internal/job"

// State is how far a slot has come, as its record says.
type State string

// The states, in order. A record is written before the step is taken, so that a crash leaves a trace of all it left.
const (
	StateIntent      State = "intent"          // uid taken; directory and container may exist, by name
	StateCreated     State = "created"         // container id known
	StateStarted     State = "started"         // start asked for
	StateReady       State = "ready"           // the gate was passed, key and evidence stored
	StateTaken       State = "taken"           // handed over to its job
	StateCleanup     State = "cleanup_pending" // removal failed, to be tried again
	StateQuarantined State = "quarantined"     // a process of it cannot be killed: its uid stays taken
	StateGone        State = "gone"            // nothing is left; forget the row
)

// SlotRecord is what the node must remember of a slot to clean up after a crash. The caller stores it as it is.
type SlotRecord struct {
	Slot        string
	State       State
	UID         uint32
	ContainerID string // empty before created
	Job         job.ID
	Attempt     int
	Dir         string // <RunDir>/slots/<slot>
	Key         []byte // of the init protocol; from ready on. Keep it sealed
	Evidence    []byte // JSON of Evidence; from ready on
	Error       string // last cleanup error
	Tries       int    // of cleanup
}
