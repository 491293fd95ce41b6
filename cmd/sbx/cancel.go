package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

const cancelHelp = `
Cancels each job and all jobs it started: TERM first, then some seconds to finish, then KILL. --kill leaves out the
grace. It returns when the daemon has noted the wish; 'sbx wait' waits for the end. It may be repeated, and cancelling a
job that has ended changes nothing. With --json, one JSON array of the jobs.

examples:
  sbx cancel build
  sbx cancel --kill $(sbx ps -q -f label=team=ml)`

func (a *app) cancelVerb() *cli.Command {
	return &cli.Command{
		Name: "cancel", Category: "jobs", Usage: "end jobs", ArgsUsage: "[flags] JOB…", Description: cancelHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "kill", Aliases: []string{"k"}, Usage: "at once, without grace"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON array"},
		},
		Action:        a.cancel,
		ShellComplete: a.completeJobs,
	}
}

func (a *app) cancel(ctx context.Context, cmd *cli.Command) error {
	refs, err := refs(cmd, 0)
	if err != nil {
		return err
	}
	c := newClient(cmd)
	defer c.Close()
	jobs, code := []*api.Job{}, 0
	for _, ref := range refs {
		job, err := c.Cancel(ctx, ref, cmd.Bool("kill"))
		if err != nil {
			code = a.firstCode(code, err)
			continue
		}
		jobs = append(jobs, job)
		if !cmd.Bool("json") {
			if _, err := fmt.Fprintln(a.stdout, clean(job.ID)); err != nil {
				return err
			}
		}
	}
	if cmd.Bool("json") {
		if err := a.printJSON(jobs); err != nil {
			return err
		}
	}
	return exitCode(code)
}
