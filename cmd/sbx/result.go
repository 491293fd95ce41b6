package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

const resultHelp = `
Prints how a job ended, what it used and its summary. Without --wait a job that has not ended is exit code 1.
With --json, the result as the daemon sends it.

examples:
  sbx result build
  sbx result --wait --json 0191e0c2 | jq .usage`

func (a *app) resultVerb() *cli.Command {
	return &cli.Command{
		Name: "result", Category: "jobs", Usage: "print a job's result", ArgsUsage: "[flags] JOB", Description: resultHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "wait", Usage: "wait until the job has ended"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON document"},
		},
		Action:        a.result,
		ShellComplete: a.completeJobs,
	}
}

func (a *app) result(ctx context.Context, cmd *cli.Command) error {
	jobs, err := refs(cmd, 1)
	if err != nil {
		return err
	}
	c := newClient(cmd)
	defer c.Close()
	var r *api.Result
	var job *api.Job
	if cmd.Bool("wait") {
		r, err = c.WaitResult(ctx, jobs[0])
	} else {
		r, job, err = c.Result(ctx, jobs[0], 0)
	}
	switch {
	case err != nil:
		return err
	case job != nil:
		a.note("job %s has not ended, it is %s; 'sbx result --wait %s' waits", job.ID, job.State, shortID(job.ID))
		if cmd.Bool("json") {
			if err := a.printJSON(job); err != nil {
				return err
			}
		}
		return exitCode(exitNotYet)
	case cmd.Bool("json"):
		return a.printJSON(r)
	}
	return a.printResult(r)
}

func (a *app) printResult(r *api.Result) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, clean(fmt.Sprintf(format, args...)))
	}
	line("job", "%s", r.Job)
	fmt.Fprintf(&b, "%-10s %s\n", "status", a.stdout.paint(stateColour(r.Status), clean(howEnded(r.Outcome, r.Usage.WallMS))))
	line("exit code", "%d", r.RunExit)
	if r.ParentSession != "" {
		line("session", "%s", r.ParentSession)
	}
	if d := r.Delegation; d != nil {
		line("delegation", "role %s, skills %s, set by %s", orDash(d.Role), orDash(strings.Join(d.Skills, " ")), orDash(d.Source))
	}
	if t := r.Timings; t.Queued > 0 {
		line("queued", "%s", time.UnixMilli(t.Queued).Format(time.RFC3339))
		if t.Started > 0 {
			line("waited", "%s", span(t.Started-t.Queued))
		}
	}
	usageLines(line, r.Usage)
	if s := r.Stream; s != nil {
		kept := ""
		if s.Truncated {
			kept = ", kept " + size(s.Kept)
		}
		line("output", "%s (stdout %s, stderr %s%s)", size(s.Bytes), size(s.Stdout), size(s.Stderr), kept)
		if s.Fault != "" {
			line("damaged", "%s", s.Fault)
		}
	}
	for _, e := range r.Evidence {
		line("evidence", "%s", e)
	}
	if r.Summary != "" {
		b.WriteString("\n" + strings.TrimRight(cleanLines(r.Summary), "\n") + "\n")
	}
	_, err := a.stdout.Write([]byte(b.String()))
	return err
}

// usageLines writes what was measured; what is absent was not, and is left out.
func usageLines(line func(name, format string, args ...any), u api.Usage) {
	for _, m := range []struct {
		name   string
		value  *int64
		format func(int64) string
	}{
		{"ran", u.WallMS, span}, {"cpu", u.CPUMS, span}, {"memory", u.MemoryPeak, size}, {"sent", u.EgressUp, size},
		{"received", u.EgressDown, size}, {"artifacts", u.ArtifactBytes, size},
		{"children", u.Children, func(n int64) string { return fmt.Sprint(n) }},
	} {
		if m.value != nil {
			line(m.name, "%s", m.format(*m.value))
		}
	}
}
