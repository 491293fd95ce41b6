package job

// Status says how a job ended.
type Status string

// The statuses.
const (
	Success         Status = "success"
	ErrorStatus     Status = "error"
	Partial         Status = "partial"
	Timeout         Status = "timeout"
	BudgetExhausted Status = "budget_exhausted"
	Cancelled       Status = "cancelled"
	Unverified      Status = "unverified"
	Lost            Status = "lost"
	Failed          Status = "failed"
)

// Statuses lists them all.
func Statuses() []Status {
	return []Status{Success, ErrorStatus, Partial, Timeout, BudgetExhausted, Cancelled, Unverified, Lost, Failed}
}

// Reason is the closed list of why a job ended as it did.
type Reason string

// The reasons, grouped by the status they go with.
const (
	// error
	ReasonExit          Reason = "exited"         // non-zero exit code
	ReasonSignal        Reason = "signal"         // died of a signal
	ReasonOOM           Reason = "oom"            // the cgroup's own counter says a process was killed for memory
	ReasonNotFound      Reason = "not_found"      // the command does not exist in the image (127)
	ReasonNotExecutable Reason = "not_executable" // it exists and cannot be executed (126)
	ReasonDiskFull      Reason = "disk_full"
	// budget_exhausted: the dimension that ran out
	ReasonBudgetCPU    Reason = "cpu_ms"
	ReasonBudgetOutput Reason = "output_bytes"
	// timeout
	ReasonWallClock Reason = "wall_clock"
	// partial
	ReasonTimeBudget      Reason = "time_budget"
	ReasonIterationBudget Reason = "iteration_budget"
	// cancelled
	ReasonByCaller   Reason = "by_caller"
	ReasonByOperator Reason = "by_operator"
	ReasonParentEnd  Reason = "parent_ended"
	ReasonLeaseLost  Reason = "lease_lost"
	// unverified
	ReasonNoAuthenticatedResult Reason = "no_authenticated_result"
	// lost
	ReasonVanished      Reason = "vanished"
	ReasonInitDied      Reason = "init_died"
	ReasonEngineRestart Reason = "engine_restart"
	ReasonOrphaned      Reason = "orphaned"
	ReasonFenced        Reason = "fenced"
	ReasonUnkillable    Reason = "unkillable"
	// failed
	ReasonImagePull   Reason = "image_pull"
	ReasonStartFailed Reason = "start_failed"
	ReasonGateFailed  Reason = "gate_failed" // the container did not have the expected posture
	ReasonEngineError Reason = "engine_error"
	ReasonMountFailed Reason = "mount_failed"
	ReasonWorkdir     Reason = "workdir" // the working directory does not exist in the container
	ReasonStorage     Reason = "storage" // our own stream or database could not be written
	ReasonInterrupted Reason = "interrupted"
)

// Outcome is how a job ended: a value, never a Go error.
type Outcome struct {
	Status        Status `json:"status"`
	Reason        Reason `json:"reason,omitempty"`
	Detail        string `json:"detail,omitempty"`         // one line for people; the engine's own words where it failed
	ClaimedStatus string `json:"claimed_status,omitempty"` // unverified only
	ExitCode      *int   `json:"exit_code,omitempty"`      // absent where the command never exited by itself
	Signal        int    `json:"signal,omitempty"`
	SignalName    string `json:"signal_name,omitempty"`

	// Evidence, kept whatever won.
	OOMKilled  bool   `json:"oom_killed,omitempty"`
	TimedOut   bool   `json:"timed_out,omitempty"`
	KilledBy   string `json:"killed_by,omitempty"` // "", cancel, deadline, lease, daemon
	LeftKilled int    `json:"left_killed,omitempty"`
}

// RunExit is the exit code of `sbx run` for an outcome.
func (o Outcome) RunExit() int {
	switch o.Status {
	case Success:
		return 0
	case Timeout:
		return ExitTimeout
	case BudgetExhausted:
		return ExitBudgetExhausted
	case Unverified:
		return ExitUnverified
	case Cancelled, Lost:
		return ExitLost
	case Failed:
		return ExitDaemon
	case ErrorStatus, Partial:
		return o.commandExit()
	}
	return ExitDaemon
}

func (o Outcome) commandExit() int {
	switch {
	case o.Signal > 0:
		return 128 + o.Signal
	case o.ExitCode != nil && (*o.ExitCode != 0 || o.Status == Partial):
		return *o.ExitCode
	case o.Status == Partial:
		return 0
	}
	return 1 // an error never looks like success, whatever the command itself exited with
}

// StatusExit is the exit code under --exit-status: 0 success or iteration partial, 1 error, 2 timeout or time
// partial, 3 could not be set up, 4 budget exhausted.
func (o Outcome) StatusExit() int {
	switch o.Status {
	case Success:
		return 0
	case Partial:
		if o.Reason == ReasonIterationBudget {
			return 0
		}
		return 2
	case Timeout:
		return 2
	case Failed:
		return 3
	case BudgetExhausted:
		return 4
	}
	return 1
}
