package server

import (
	"sandboxd/api"
	"sandboxd/internal/job"
)

// FromJob shows a job as listings do. Values of the environment, the task and stdin are never shown.
func FromJob(j job.Job) api.Job {
	out := api.Job{
		ID:            string(j.ID),
		Root:          string(j.Root),
		Parent:        string(j.Parent),
		Depth:         j.Depth,
		Owner:         j.Owner,
		Name:          j.Spec.Name,
		Command:       j.Spec.Command,
		Image:         j.Spec.Image,
		ImageID:       j.Spec.ImageID,
		Profile:       j.Spec.Profile,
		Role:          j.Spec.Role,
		Skills:        j.Spec.Skills,
		State:         string(j.State),
		Priority:      j.Spec.Priority,
		Labels:        j.Spec.Labels,
		Stdin:         string(j.Spec.Stdin),
		Result:        j.Spec.Result,
		Lease:         j.Spec.Lease,
		ParentSession: j.Spec.Session,
		Workdir:       j.Spec.Workdir,
		Timings:       api.Timings(j.Times),
	}
	if out.Command == nil {
		out.Command = []string{}
	}
	if w := j.Spec.Workspace; w != nil {
		out.Workspace = &api.Workspace{Path: w.Path, Mode: string(w.Mode)}
	}
	for _, m := range j.Spec.Mounts {
		out.Mounts = append(out.Mounts, api.Mount(m))
	}
	if j.Outcome != nil {
		out.Outcome = new(FromOutcome(*j.Outcome))
	}
	return out
}

// FromJobDetailed adds what the record holds beside that: names of the environment, provenance, a stored cancel, what
// was refused, what the gate saw.
func FromJobDetailed(j job.Job) api.Job {
	out := FromJob(j)
	for _, v := range j.Spec.Env {
		out.EnvNames = append(out.EnvNames, v.Name)
	}
	out.Cancelling = string(j.CancelReason)
	out.Delegation = delegation(j)
	if j.Result != nil {
		out.Denials, out.DenialsTotal = fromDenials(j.Result.Denials), j.Result.DenialsTotal
	}
	// The slot of a job that ended is gone; what its start gate saw is on the record.
	if j.Result != nil && len(j.Result.Gate) > 0 {
		out.Slot = &api.Slot{State: "gone", Evidence: j.Result.Gate}
	}
	return out
}

// FromJobInTree shows a job among its relatives.
func FromJobInTree(j job.Job) api.TreeJob {
	out := api.TreeJob{
		ID:      string(j.ID),
		Parent:  string(j.Parent),
		Depth:   j.Depth,
		Name:    j.Spec.Name,
		Profile: j.Spec.Profile,
		State:   string(j.State),
		Timings: api.Timings(j.Times),
	}
	if j.Outcome != nil {
		out.Outcome = new(FromOutcome(*j.Outcome))
	}
	return out
}

// FromOutcome adds the exit codes of the client to an outcome.
func FromOutcome(o job.Outcome) api.Outcome {
	return api.Outcome{
		Status:        string(o.Status),
		Reason:        string(o.Reason),
		Detail:        o.Detail,
		ClaimedStatus: o.ClaimedStatus,
		ExitCode:      o.ExitCode,
		Signal:        o.Signal,
		SignalName:    o.SignalName,
		OOMKilled:     o.OOMKilled,
		TimedOut:      o.TimedOut,
		KilledBy:      o.KilledBy,
		LeftKilled:    o.LeftKilled,
		RunExit:       o.RunExit(),
		StatusExit:    o.StatusExit(),
	}
}
