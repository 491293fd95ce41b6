package server

import (
	"bytes"
	"context"
	"net/http"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// submit is POST /v1/jobs.
func (s *Server) submit(x *exchange) error {
	body, release, err := s.readBody(x)
	if err != nil {
		return err
	}
	defer release()
	var asked api.JobRequest
	if err := Decode(body, &asked); err != nil {
		return err
	}
	request, err := ToRequest(asked)
	if err != nil {
		return err
	}
	j, created, err := s.cfg.Jobs.Submit(x.ctx, x.caller, request)
	if err != nil {
		return err
	}
	if j.Spec.Lease && j.State != job.Done {
		s.leases.Watch(j.ID)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	x.w.Header().Set("Location", api.PathJobs+"/"+string(j.ID))
	writeJSON(x.w, status, x.show(FromJob(j)))
	return nil
}

// get is GET /v1/jobs/{ref}.
func (s *Server) get(x *exchange) error {
	j, err := s.job(x)
	if err != nil {
		return err
	}
	out, err := s.detailed(x.ctx, j)
	if err != nil {
		return err
	}
	writeJSON(x.w, http.StatusOK, x.show(out))
	return nil
}

// detailed is a job with what is known of it beside the record.
func (s *Server) detailed(ctx context.Context, j job.Job) (api.Job, error) {
	out := FromJobDetailed(j)
	out.Position = s.cfg.Jobs.Position(j.ID)
	out.Envelope = s.cfg.Status.EnvelopeFields(j.Envelope)
	for _, f := range out.Envelope {
		switch f.Field {
		case "trust":
			out.Trust = f.Value
		case "max_risk":
			out.MaxRisk = f.Value
		}
	}
	slot, err := s.cfg.Status.Slot(ctx, j.ID)
	if err != nil {
		return out, err
	}
	if slot != nil {
		out.Slot = slot
	}
	if s.cfg.Accounts == nil {
		return out, nil
	}
	lines, err := s.cfg.Accounts.Budget(ctx, []job.ID{j.ID})
	if err != nil {
		return out, err
	}
	out.Budget = lines[j.ID]
	if j.State != job.Done {
		denials, total, err := s.cfg.Accounts.Denials(ctx, j.ID)
		if err != nil {
			return out, err
		}
		out.Denials, out.DenialsTotal = fromDenials(denials), total
	}
	return out, nil
}

// maxCancelBody bounds the body of a cancel.
const maxCancelBody = 4 << 10

// cancel is POST /v1/jobs/{ref}/cancel.
func (s *Server) cancel(x *exchange) error {
	j, err := s.job(x)
	if err != nil {
		return err
	}
	if err := x.notItself(j, "a job cannot cancel itself; it ends by exiting"); err != nil {
		return err
	}
	body, err := x.readAll(s.cfg.BodyTimeout, maxCancelBody)
	if err != nil {
		return err
	}
	var asked api.CancelRequest
	if len(bytes.TrimSpace(body)) > 0 {
		if err := Decode(body, &asked); err != nil {
			return err
		}
	}
	if j.State != job.Done {
		if j, err = s.cancelLive(x, j, asked.Kill); err != nil {
			return err
		}
	}
	writeJSON(x.w, http.StatusOK, x.show(FromJobDetailed(j)))
	return nil
}

// cancelLive cancels a job that was not done a moment ago. One that ended meanwhile is no error.
func (s *Server) cancelLive(x *exchange, j job.Job, kill bool) (job.Job, error) {
	reason := job.ReasonByCaller
	if x.caller.Admin && x.caller.Principal != j.Owner {
		reason = job.ReasonByOperator
	}
	cancelled, err := s.cfg.Jobs.Cancel(x.ctx, x.caller, j.ID, kill, reason)
	if err == nil {
		return cancelled, nil
	}
	now, readErr := s.cfg.Records.Job(x.ctx, j.ID)
	if readErr == nil && now.State == job.Done {
		return now, nil
	}
	return job.Job{}, err
}

// listPage is how many records a listing holds in memory at a time.
const listPage = 32

// list is GET /v1/jobs.
func (s *Server) list(x *exchange) error {
	filter, err := s.filter(x)
	if err != nil {
		return err
	}
	out := api.JobList{Jobs: []api.Job{}}
	bytes, limit := 0, filter.Limit
	for {
		filter.Limit = min(listPage, limit-len(out.Jobs)+1) // one more tells whether there is a next page
		jobs, err := s.cfg.Records.Jobs(x.ctx, x.viewer(), filter)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if len(out.Jobs) == limit || bytes > api.MaxListBytes {
				out.Next = out.Jobs[len(out.Jobs)-1].ID
				writeJSON(x.w, http.StatusOK, out)
				return nil
			}
			shown := x.show(FromJob(j))
			bytes += weight(shown)
			out.Jobs = append(out.Jobs, shown)
			filter.Before = j.ID
		}
		if len(jobs) < filter.Limit {
			writeJSON(x.w, http.StatusOK, out)
			return nil
		}
	}
}

// weight is about how many bytes a job takes in a listing.
func weight(j api.Job) int {
	n := 1 << 10
	for _, arg := range j.Command {
		n += len(arg) + 3
	}
	for k, v := range j.Labels {
		n += len(k) + len(v) + 6
	}
	for _, m := range j.Mounts {
		n += len(m.Source) + len(m.Name) + 24
	}
	return n
}

func (s *Server) filter(x *exchange) (store.Filter, error) {
	var f store.Filter
	var err error
	if f.States, err = x.query.states("state"); err != nil {
		return f, err
	}
	if f.Labels, err = x.query.labels("label"); err != nil {
		return f, err
	}
	limit, err := x.query.number("limit", api.DefaultLimit, 1, api.MaxListLimit)
	if err != nil {
		return f, err
	}
	f.Limit = int(limit)
	if f.Name = x.query.get("name"); x.query.has("name") && !soundRef(f.Name) {
		return f, job.Errorf(job.CodeInvalid, "name", "%.64q is not a name", f.Name)
	}
	if x.query.has("before") {
		if f.Before, err = job.ParseID(x.query.get("before")); err != nil {
			return f, job.Errorf(job.CodeInvalid, "before", "%.64q is not a whole job id; take next of the last page", x.query.get("before"))
		}
	}
	for name, to := range map[string]*job.ID{"root": &f.Root, "parent": &f.Parent} {
		if !x.query.has(name) {
			continue
		}
		j, err := s.resolve(x, name, x.query.get(name))
		if err != nil {
			return f, err
		}
		*to = j.ID
	}
	return f, nil
}
