package admission

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/job"
)

// Where a job sees its workspace and its mounts.
const (
	seenWorkspace = "/workspace"
	seenMounts    = "/mnt/"
)

// places are host paths as a request names them, before links are followed.
type places struct {
	workspace string
	mounts    []string // in the order of the request's
}

// checkPlaces reads the paths as they are written. What lies there is looked at last.
func checkPlaces(_ context.Context, _ *Checker, a *attempt) (err error) {
	a.ask = askEnvelope(a.req)
	if w := a.req.Workspace; w != nil {
		if a.places.workspace, err = a.host("workspace", w.Path); err != nil {
			return err
		}
		a.ask.WorkspacePath, a.ask.WorkspaceMode = path.Clean(a.places.workspace), string(w.Mode)
	}
	if n := len(a.req.Mounts); n > maxMounts {
		return invalid("mounts", "%d, at most %d are allowed", n, maxMounts)
	}
	a.ask.Mounts = slices.Clone(a.req.Mounts)
	for i, m := range a.req.Mounts {
		if !namePattern.MatchString(m.Name) {
			return invalid("mounts", "%.64q is not a mount's name; use 1 to 63 of a-z A-Z 0-9 _ . - and begin with a letter or digit", m.Name)
		}
		if slices.ContainsFunc(a.req.Mounts[:i], func(o job.Mount) bool { return o.Name == m.Name }) {
			return invalid("mounts", "the name %q is used twice", m.Name)
		}
		source, err := a.host("mounts."+m.Name, m.Source)
		if err != nil {
			return err
		}
		a.places.mounts = append(a.places.mounts, source)
		a.ask.Mounts[i].Source = path.Clean(source)
	}
	return nil
}

// host is the host path of one that a request names. A job names what it sees: its workspace, its mounts, and what is in
// them; that a link does not lead out of there is seen to when it was followed.
func (a *attempt) host(field, p string) (string, error) {
	where := "host path"
	if a.parent != nil {
		where = "path inside the container"
	}
	if len(p) > maxPath || !filepath.IsAbs(p) || strings.IndexByte(p, 0) >= 0 {
		return "", invalid(field, "%.128q is not an absolute %s of at most %d bytes", p, where, maxPath)
	}
	if a.parent == nil {
		return p, nil
	}
	var seen []string
	s := a.parent.Job.Spec
	if s.Workspace != nil {
		seen = append(seen, seenWorkspace)
		if rest, ok := below(path.Clean(p), seenWorkspace); ok {
			return path.Join(s.Workspace.Path, rest), nil
		}
	}
	for _, m := range s.Mounts {
		seen = append(seen, seenMounts+m.Name)
		if rest, ok := below(path.Clean(p), seenMounts+m.Name); ok {
			return path.Join(m.Source, rest), nil
		}
	}
	return "", job.Errorf(job.CodeWorkspace, field, "%.128q is not this job's to hand on; allowed is: %s", p, showRoster(seen)).
		WithHint("name one of them or a path inside it")
}

// below returns what follows top in a clean path that is top or lies in it.
func below(p, top string) (rest string, ok bool) {
	if p == top {
		return "", true
	}
	return strings.CutPrefix(p, top+"/")
}

// checkPaths follows the paths with the rights of the tree's owner.
func checkPaths(ctx context.Context, c *Checker, a *attempt) error {
	if w := a.req.Workspace; w != nil {
		resolved, dir, err := c.follow(ctx, a, "workspace", a.places.workspace)
		if err != nil {
			return err
		}
		if !dir {
			return job.Errorf(job.CodeWorkspace, "workspace", "%q is not a directory", w.Path).WithHint("give a single file as a mount: -v %s:NAME", w.Path)
		}
		a.ask.WorkspacePath = resolved
	}
	for i, source := range a.places.mounts {
		resolved, _, err := c.follow(ctx, a, "mounts."+a.req.Mounts[i].Name, source)
		if err != nil {
			return err
		}
		a.ask.Mounts[i].Source = resolved
	}
	return nil
}

func (c *Checker) follow(ctx context.Context, a *attempt, field, p string) (string, bool, error) {
	caller := a.caller
	if a.parent != nil {
		caller = job.JobCaller(a.parent.Job)
	}
	resolved, dir, err := c.paths.Check(ctx, caller, p)
	if err != nil {
		var e *job.Error
		if errors.As(err, &e) && e.Field == "" {
			e.Field = field
		}
		return "", false, err
	}
	if !utf8.ValidString(resolved) {
		return "", false, job.Errorf(job.CodeWorkspace, field, "%.128q is reached as %.128q, which is not UTF-8 and could not be stored", p, resolved)
	}
	return resolved, dir, nil
}
