package server

import (
	"context"
	"net/http"
	"slices"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// tree is GET /v1/jobs/{ref}/tree.
func (s *Server) tree(x *exchange) error {
	j, err := s.job(x)
	if err != nil {
		return err
	}
	out, err := s.descent(x.ctx, j)
	if err != nil {
		return err
	}
	if err := s.addBudgets(x.ctx, out.Jobs); err != nil {
		return err
	}
	writeJSON(x.w, http.StatusOK, out)
	return nil
}

// descent reads a job and its descendants, newest first as the store lists them, and puts them in the order of a walk.
func (s *Server) descent(ctx context.Context, top job.Job) (api.Tree, error) {
	jobs := []api.TreeJob{FromJobInTree(top)}
	page := store.Filter{Limit: listPage}
	for {
		below, err := s.cfg.Records.Jobs(ctx, store.Viewer{Job: top.ID}, page)
		switch {
		case err != nil:
			return api.Tree{}, err
		case len(below) == 0:
			return api.Tree{Jobs: walk(jobs)}, nil
		}
		for _, j := range below {
			if page.Before = j.ID; j.ID == top.ID {
				continue
			}
			if len(jobs) == api.MaxTreeJobs {
				return api.Tree{Jobs: walk(jobs), Truncated: true}, nil
			}
			jobs = append(jobs, FromJobInTree(j))
		}
	}
}

// walk orders the jobs below the first one: each before its children, siblings by age, and at the end those whose
// parents were left out. It counts the children.
func walk(jobs []api.TreeJob) []api.TreeJob {
	children := map[string][]api.TreeJob{}
	for _, j := range jobs[1:] {
		children[j.Parent] = append(children[j.Parent], j)
	}
	out := make([]api.TreeJob, 0, len(jobs))
	visit := func(todo ...api.TreeJob) {
		for len(todo) > 0 {
			j := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			own := children[j.ID] // newest first, so that the oldest is visited next
			delete(children, j.ID)
			j.Children = len(own)
			out = append(out, j)
			todo = append(todo, own...)
		}
	}
	visit(jobs[0])
	for _, j := range slices.Backward(jobs) { // those left have no parent here
		if orphans, left := children[j.Parent]; left {
			delete(children, j.Parent)
			visit(orphans...)
		}
	}
	return out
}

func (s *Server) addBudgets(ctx context.Context, jobs []api.TreeJob) error {
	if s.cfg.Accounts == nil {
		return nil
	}
	ids := make([]job.ID, len(jobs))
	for i, j := range jobs {
		ids[i] = job.ID(j.ID)
	}
	lines, err := s.cfg.Accounts.Budget(ctx, ids)
	if err != nil {
		return err
	}
	for i := range jobs {
		jobs[i].Budget = lines[ids[i]]
	}
	return nil
}
