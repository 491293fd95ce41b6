package store

import (
	"context"
	"strings"

	"sandboxd/internal/job"
)

// maxCandidates is how many jobs an ambiguous reference names.
const maxCandidates = 5

// Resolve implements Reader. A whole id is never taken for a name, so that nobody can hide a job behind another's name.
func (s *SQLite) Resolve(ctx context.Context, v Viewer, ref string) (job.Job, error) {
	if err := s.ready(); err != nil {
		return job.Job{}, err
	}
	var ids []string
	err := s.read.snapshot(ctx, func(snap snapshot) (err error) {
		ids, err = snap.candidates(ctx, v, ref)
		return err
	})
	switch {
	case err != nil:
		return job.Job{}, s.explain("finding a job", err)
	case len(ids) == 0:
		return job.Job{}, notFound(ref)
	case len(ids) > 1:
		return job.Job{}, ambiguous(ref, ids)
	}
	return s.Job(ctx, job.ID(ids[0]))
}

// candidates are the jobs whose id begins with ref and the newest whose name is ref, without repeats.
func (s snapshot) candidates(ctx context.Context, v Viewer, ref string) ([]string, error) {
	var ids []string
	if prefix, err := job.Prefix(ref); err == nil {
		if ids, err = s.ids(ctx, prefixQuery(v, prefix)); err != nil {
			return nil, err
		}
		if len(prefix) == 36 {
			return ids, nil
		}
	}
	if ref == "" {
		return ids, nil
	}
	named, err := s.ids(ctx, listQuery(v, Filter{Name: ref, Limit: 1}))
	if err != nil {
		return nil, err
	}
	for _, id := range named {
		if !strings.HasPrefix(id, strings.ToLower(ref)) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// prefixQuery walks a range of ids: "g" sorts after every character of an id.
func prefixQuery(v Viewer, prefix string) query {
	q := listQuery(v, Filter{Limit: maxCandidates + 1})
	q.and("j.id >= " + q.arg(prefix))
	q.and("j.id < " + q.arg(prefix+"g"))
	return q
}

func ambiguous(ref string, ids []string) error {
	more := ""
	if len(ids) > maxCandidates {
		ids, more = ids[:maxCandidates], ", …"
	}
	return job.Errorf(job.CodeInvalid, "id", "%.64q stands for several jobs: %s%s", ref, strings.Join(ids, ", "), more).
		WithHint("give more characters of the id")
}
