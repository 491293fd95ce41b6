package admission

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
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
		return invalid("env", "%d variables, at most %d are allowed, inherited ones included", n, maxEnv)
	}
	seen := make(map[string]bool, len(a.req.Env))
	for _, e := range a.req.Env {
		switch {
		case e.Name == "" || strings.ContainsAny(e.Name, "=\x00") || hasControl(e.Name) || !utf8.ValidString(e.Name):
			return invalid("env", "%.64q is not a variable's name; it may not be empty nor contain '=', NUL or control characters", e.Name)
		case strings.IndexByte(e.Value, 0) >= 0:
			return invalid(envField(e.Name), "the value contains a NUL byte")
		case len(e.Name)+len(e.Value)+1 > maxString:
			return job.Errorf(job.CodeTooLarge, envField(e.Name), "%d bytes, one variable may have %d", len(e.Name)+len(e.Value)+1, maxString)
		case strings.HasPrefix(strings.ToUpper(e.Name), "SANDBOXD_"):
			return invalid(envField(e.Name), "names that begin with SANDBOXD_ are set by the daemon; choose another name")
		case seen[e.Name]:
			return invalid(envField(e.Name), "is given twice")
		}
		seen[e.Name] = true
		for _, p := range proxyNames {
			if strings.EqualFold(e.Name, p) {
				return invalid(envField(e.Name), "proxy variables are set by the daemon from the job's egress policy; leave it out")
			}
		}
	}
	a.out.Spec.Env = a.req.Env
	return nil
}

// inheritEnv adds the variables that the parent's envelope hands on and the request does not set.
func (a *attempt) inheritEnv() {
	if a.parent == nil {
		return
	}
	own := slices.Clone(a.req.Env)
	for _, v := range a.parent.Job.Spec.Env {
		set := slices.ContainsFunc(a.req.Env, func(e job.EnvVar) bool { return e.Name == v.Name })
		if !set && slices.Contains(a.parent.Envelope.EnvInherit, v.Name) {
			own = append(own, v)
		}
	}
	slices.SortStableFunc(own, func(x, y job.EnvVar) int { return strings.Compare(x.Name, y.Name) })
	a.req.Env = own
}

// envField names a variable in a refusal; its value never stands in one.
func envField(name string) string { return fmt.Sprintf("env.%.64s", name) }
