package server

import (
	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// FromResult is the whole account of a done job. A done job without an outcome is a fault of ours.
func FromResult(j job.Job) (api.Result, error) {
	if j.Outcome == nil {
		return api.Result{}, job.Errorf(job.CodeInternal, "", "job %s is done and has no outcome", j.ID)
	}
	out := api.Result{
		Schema:        api.ResultSchema,
		Job:           string(j.ID),
		Parent:        string(j.Parent),
		Root:          string(j.Root),
		ParentSession: j.Spec.Session,
		Outcome:       FromOutcome(*j.Outcome),
		Delegation:    delegation(j),
		Timings:       api.Timings(j.Times),
	}
	r := j.Result
	if r == nil { // it never ran
		return out, nil
	}
	out.Summary = r.Summary
	out.SummaryTruncated = r.SummaryTruncated
	out.SummaryRunes = r.SummaryRunes
	out.Denials, out.DenialsTotal = fromDenials(r.Denials), r.DenialsTotal
	out.Usage = api.Usage(r.Usage)
	out.Stream = (*api.Stream)(r.Stream)
	out.Evidence = r.Evidence
	return out, nil
}

// delegation is the result's own, or what the request said where no result was made.
func delegation(j job.Job) *api.Delegation {
	switch {
	case j.Result != nil && j.Result.Delegation != nil:
		return (*api.Delegation)(j.Result.Delegation)
	case j.Spec.Role != "" || len(j.Spec.Skills) > 0:
		return &api.Delegation{Role: j.Spec.Role, Skills: j.Spec.Skills, Source: j.Owner}
	}
	return nil
}

func fromDenials(denials []job.Denial) []api.Denial {
	var out []api.Denial
	for _, d := range denials {
		out = append(out, api.Denial{Kind: d.Kind, Code: string(d.Code), Field: d.Field, Detail: d.Detail, Time: d.TimeMS})
	}
	return out
}

// FromEvent is one line of the events.
func FromEvent(e store.Event) api.Event {
	return api.Event{
		Seq:     e.Seq,
		Time:    e.TimeMS,
		Job:     string(e.Job),
		Root:    string(e.Root),
		Type:    e.Type,
		Payload: e.Payload,
	}
}
