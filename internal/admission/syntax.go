package admission

import (
	"context"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandboxd/internal/job"
)

// Bounds of a request's words, in bytes unless said otherwise.
const (
	maxArgEnv     = 1 << 20
	maxString     = 128<<10 - 1 // one argv or env string, as the kernel bounds it
	maxEnv        = 256
	maxLabels     = 64
	maxLabelKey   = 63  // characters
	maxLabelValue = 255 // characters
	maxTask       = 1 << 20
	maxStdin      = 1 << 20
	maxPath       = 4095
	maxMounts     = 32
	maxSkills     = 64
	maxWord       = 255
)

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

func checkCommand(_ context.Context, _ *Checker, a *attempt) error {
	r := a.req
	if len(r.Command) == 0 || r.Command[0] == "" {
		return invalid("command", "no command was given").WithHint("write it after the flags: sbx run -- echo hello")
	}
	total := 0
	for i, s := range r.Command {
		if strings.IndexByte(s, 0) >= 0 {
			return invalid("command", "argument %d contains a NUL byte, which no program can be given", i)
		}
		if len(s) > maxString {
			return job.Errorf(job.CodeTooLarge, "command", "argument %d has %d bytes, one string may have %d", i, len(s), maxString).
				WithHint("give it as a file in the workspace or on stdin")
		}
		total += len(s) + 1
	}
	for _, e := range r.Env {
		total += len(e.Name) + len(e.Value) + 2
	}
	if total > maxArgEnv {
		return job.Errorf(job.CodeTooLarge, "command", "arguments and environment have %d bytes together, at most %d are allowed", total, maxArgEnv).
			WithHint("give the data as a file in the workspace or on stdin")
	}
	if len(r.Stdin) > maxStdin {
		return job.Errorf(job.CodeTooLarge, "stdin", "%d bytes, a request may carry %d", len(r.Stdin), maxStdin).WithHint("stream it instead: sbx run -i")
	}
	if len(r.Stdin) > 0 && r.StdinStream {
		return invalid("stdin", "bytes and a stream were both given; choose one")
	}
	a.out.Spec.Command = r.Command
	a.out.Spec.StdinData = r.Stdin
	switch {
	case r.StdinStream:
		a.out.Spec.Stdin = job.StdinStream
	case len(r.Stdin) > 0:
		a.out.Spec.Stdin = job.StdinBytes
	}
	return nil
}

var proxyNames = []string{"http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"}

func checkEnv(_ context.Context, _ *Checker, a *attempt) error {
	if n := len(a.req.Env); n > maxEnv {
		return invalid("env", "%d variables, at most %d are allowed", n, maxEnv)
	}
	for _, e := range a.req.Env {
		switch {
		case e.Name == "" || strings.ContainsAny(e.Name, "=\x00") || hasControl(e.Name) || !utf8.ValidString(e.Name):
			return invalid("env", "%.64q is not a variable's name; it may not be empty nor contain '=', NUL or control characters", e.Name)
		case strings.IndexByte(e.Value, 0) >= 0:
			return invalid("env."+e.Name, "the value contains a NUL byte")
		case len(e.Name)+len(e.Value)+1 > maxString:
			return job.Errorf(job.CodeTooLarge, "env."+e.Name, "%d bytes, one variable may have %d", len(e.Value), maxString)
		case strings.HasPrefix(strings.ToUpper(e.Name), "SANDBOXD_"):
			return invalid("env."+e.Name, "names that begin with SANDBOXD_ are set by the daemon; choose another name")
		}
		for _, p := range proxyNames {
			if strings.EqualFold(e.Name, p) {
				return invalid("env."+e.Name, "proxy variables are set by the daemon from the job's egress policy; leave it out")
			}
		}
	}
	a.out.Spec.Env = a.req.Env
	return nil
}

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
	if len(r.Skills) > maxSkills {
		return invalid("skills", "%d, at most %d are allowed", len(r.Skills), maxSkills)
	}
	for _, s := range r.Skills {
		if err := word("skills", s); err != nil {
			return err
		}
	}
	if a.caller.Job != "" && (r.Role != "" || len(r.Skills) > 0) {
		return job.Errorf(job.CodeForbidden, "role", "only a host user may set role and skills, not a job")
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
	case dir == "" && a.req.Workspace != nil:
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
