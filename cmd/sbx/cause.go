package main

import (
	"fmt"

	"sandboxd/api"
)

// causeLine tells in one line how a job ended.
func causeLine(r *api.Result) string {
	s := fmt.Sprintf("job %s ended: %s", r.Job, howEnded(r.Outcome, r.Usage.WallMS))
	if r.Status == "failed" || r.Status == "lost" {
		s += fmt.Sprintf("; see 'sbx inspect %s'", shortID(r.Job))
	}
	return s
}

var reasonWords = map[string]string{
	"by_caller": "by the caller", "by_operator": "by the operator", "parent_ended": "because its parent ended",
	"lease_lost": "because its client went away", "oom": "out of memory", "not_found": "command not found",
	"not_executable": "command not executable", "disk_full": "disk full", "time_budget": "out of time",
	"iteration_budget": "out of iterations", "cpu_ms": "cpu", "output_bytes": "output", "no_authenticated_result": "no authenticated result came",
	"image_pull": "the image could not be had", "start_failed": "the container did not start",
	"gate_failed": "the container was not as it should be", "engine_error": "the container engine failed",
	"mount_failed": "a mount failed", "workdir": "the working directory does not exist", "storage": "the daemon could not write",
	"init_died": "the sandbox's init died", "engine_restart": "the container engine restarted",
	"vanished": "the container vanished", "unkillable": "it cannot be killed",
}

// howEnded puts an outcome into words: the status as it is, then the reason, then what the daemon says of it.
func howEnded(o api.Outcome, wallMS *int64) string {
	s, reason := o.Status, reasonWords[o.Reason]
	if reason == "" {
		reason = o.Reason
	}
	switch o.Status {
	case "timeout":
		reason = ""
		if wallMS != nil {
			s += " after " + span(*wallMS)
		}
	case "cancelled":
		s, reason = s+" "+reason, ""
	case "budget_exhausted":
		s = "budget exhausted"
	case "unverified":
		if o.ClaimedStatus != "" {
			reason += fmt.Sprintf(", though the job claims %q", o.ClaimedStatus)
		}
	}
	switch {
	case o.Reason == "exited" && o.ExitCode != nil:
		reason = fmt.Sprintf("exited with %d", *o.ExitCode)
	case o.Reason == "signal":
		reason = fmt.Sprintf("died of signal %d", o.Signal)
		if o.SignalName != "" {
			reason = fmt.Sprintf("died of %s (signal %d)", o.SignalName, o.Signal)
		}
	}
	if reason != "" {
		s += ": " + reason
	}
	if o.Detail != "" {
		s += " (" + o.Detail + ")"
	}
	return s
}
