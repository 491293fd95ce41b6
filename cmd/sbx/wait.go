package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

const waitHelp = `
Waits until each job has ended, prints one line for each (job, status, exit code), and ends with the first exit code
that is not 0, as 'sbx run' would have ended. --timeout ends the waiting with 124 and leaves the jobs alone.
With --json, one JSON array of results.

examples:
  sbx wait 0191e0c2 && echo fine
  sbx wait --exit-status --timeout 10m $(sbx ps -q)`

func (a *app) waitVerb() *cli.Command {
	return &cli.Command{
		Name: "wait", Category: "jobs", Usage: "wait until jobs have ended", ArgsUsage: "[flags] JOB…", Description: waitHelp,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "timeout", Usage: "wait for at most this `TIME`: 90s, 5m"},
			&cli.BoolFlag{Name: "exit-status", Usage: "exit codes as 'sbx run --exit-status' has them"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing on stdout"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON array of results"},
		},
		Action:        a.wait,
		ShellComplete: a.completeJobs,
	}
}

var errWaited = errors.New("waited long enough")

func (a *app) wait(ctx context.Context, cmd *cli.Command) error {
	jobs, err := refs(cmd, 0)
	if err != nil {
		return err
	}
	var limit *api.Duration
	if err := amount(cmd, "timeout", &limit, api.ParseDuration); err != nil {
		return err
	}
	if limit != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(*limit), errWaited)
		defer cancel()
	}
	c := newClient(cmd)
	defer c.Close()
	results, code := []*api.Result{}, 0
	for _, ref := range jobs {
		r, err := c.WaitResult(ctx, ref)
		if errors.Is(err, errWaited) {
			a.note("job %s has not ended after %s; it goes on", ref, limit)
			err = exitCode(exitTimeout)
		}
		if err != nil {
			code = a.firstCode(code, err)
			continue
		}
		results = append(results, r)
		if code == 0 {
			code = exitOf(r, cmd.Bool("exit-status"))
		}
		if r.Status != "success" {
			a.note("%s", causeLine(r))
		}
		if !cmd.Bool("json") && !cmd.Bool("quiet") {
			if err := a.waited(r, exitOf(r, cmd.Bool("exit-status"))); err != nil {
				return err
			}
		}
	}
	if cmd.Bool("json") {
		if err := a.printJSON(results); err != nil {
			return err
		}
	}
	return exitCode(code)
}

func (a *app) waited(r *api.Result, code int) error {
	_, err := fmt.Fprintf(a.stdout, "%s %s %d\n", clean(r.Job), a.stdout.paint(stateColour(r.Status), clean(r.Status)), code)
	return err
}

func exitOf(r *api.Result, byStatus bool) int {
	if byStatus {
		return r.StatusExit
	}
	return r.RunExit
}

// firstCode shows the error of one job among several and returns the exit code to end with.
func (a *app) firstCode(code int, err error) int {
	asJSON := a.json
	a.json = false // the document on stdout is that of all jobs
	mine := a.end(err)
	a.json = asJSON
	if code == 0 {
		return mine
	}
	return code
}
