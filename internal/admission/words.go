package admission

import (
	"context"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandboxd/internal/job"
)

func checkWords(_ context.Context, _ *Checker, a *attempt) error {
	r := a.req
	if r.Name != "" && !namePattern.MatchString(r.Name) {
		return invalid("name", "%.64q is not a name; use 1 to 63 of a-z A-Z 0-9 _ . - and begin with a letter or digit", r.Name)
	}
	if err := word("role", r.Role); err != nil {
		return err
	}
	if err := word("parent_session", r.Session); err != nil {
		return err
	}
	if err := word("idempotency_key", r.IdempotencyKey); err != nil {
		return err
	}
	if err := word("model", r.Model); err != nil {
		return err
	}
	if len(r.Image) > maxWord || hasControl(r.Image) || !utf8.ValidString(r.Image) {
		return invalid("image", "%.64q is not an image's name", r.Image)
	}
	if len(r.Skills) > maxSkills {
		return invalid("skills", "%d, at most %d are allowed", len(r.Skills), maxSkills)
	}
	for _, s := range r.Skills {
		if err := word("skills", s); err != nil {
			return err
		}
	}
	if a.caller.Job != "" && (r.Role != "" || len(r.Skills) > 0) {
		return job.Errorf(job.CodeForbidden, "role", "only a host user may set role and skills, not a job").WithHint("leave them out")
	}
	if t := r.Task; t != nil {
		if n := len(t.Goal) + len(t.Context) + len(t.Guidance); n > maxTask {
			return job.Errorf(job.CodeTooLarge, "task", "%d bytes, at most %d are allowed", n, maxTask)
		}
	}
	s := &a.out.Spec
	s.Name, s.Role, s.Skills, s.Session, s.Task = r.Name, r.Role, r.Skills, r.Session, r.Task
	return nil
}

func word(field, s string) error {
	switch {
	case utf8.RuneCountInString(s) > maxWord:
		return invalid(field, "%d characters, at most %d are allowed", utf8.RuneCountInString(s), maxWord)
	case !utf8.ValidString(s) || hasControl(s):
		return invalid(field, "%.64q contains control characters or invalid UTF-8", s)
	}
	return nil
}

func hasControl(s string) bool { return strings.IndexFunc(s, unicode.IsControl) >= 0 }

func checkLabels(_ context.Context, _ *Checker, a *attempt) error {
	if n := len(a.req.Labels); n > maxLabels {
		return invalid("labels", "%d, at most %d are allowed", n, maxLabels)
	}
	for k, v := range a.req.Labels {
		switch {
		case k == "" || utf8.RuneCountInString(k) > maxLabelKey || !utf8.ValidString(k) || hasControl(k) || strings.Contains(k, "="):
			return invalid("labels", "%.64q is not a label's key; use 1 to %d characters without '=' or control characters", k, maxLabelKey)
		case utf8.RuneCountInString(v) > maxLabelValue || !utf8.ValidString(v) || hasControl(v):
			return invalid("labels."+k, "a value has at most %d characters and no control characters", maxLabelValue)
		}
	}
	a.out.Spec.Labels = a.req.Labels
	return nil
}

func checkModes(_ context.Context, _ *Checker, a *attempt) error {
	r := a.req
	switch r.Result {
	case "", "exit":
		a.out.Spec.Result = "exit"
	case "agent", "odek":
		return invalid("result", "%q results are not served by this version; use exit, where the exit status is the result", r.Result)
	default:
		return invalid("result", "%.64q is not a kind of result; use exit", r.Result)
	}
	a.out.Spec.Priority = 5
	if r.Priority != nil {
		if *r.Priority < 0 || *r.Priority > 9 {
			return invalid("priority", "%d is out of range; use 0 (last) to 9 (first)", *r.Priority)
		}
		a.out.Spec.Priority = *r.Priority
	}
	a.out.Spec.Lease = r.Lease
	return checkWorkdir(a)
}

func checkWorkdir(a *attempt) error {
	dir := a.req.Workdir
	switch {
	case dir == "" && (a.req.Workspace != nil || a.parent != nil && a.parent.Job.Spec.Workspace != nil):
		dir = "/workspace"
	case dir == "":
		dir = "/home/job"
	}
	if len(dir) > maxPath || !path.IsAbs(dir) || strings.IndexByte(dir, 0) >= 0 {
		return invalid("workdir", "%.64q is not an absolute path inside the container", a.req.Workdir).WithHint("the workspace is seen at /workspace")
	}
	a.out.Spec.Workdir = path.Clean(dir)
	return nil
}
