package main

import (
	"context"
	"errors"
	"io"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
	"sandboxd/client"
)

const inspectHelp = `
Prints all that is known of each job, as one JSON array: the job with its effective envelope and where each value comes
from, its slot and what the start gate found, its timings, and once it has ended its result with the evidence.
--events adds what happened to it, which means reading all your events.

examples:
  sbx inspect 0191e0c2 | jq '.[0].envelope'
  sbx inspect --events build`

// inspected is one entry of the array.
type inspected struct {
	*api.Job
	Result *api.Result `json:"result,omitempty"`
	Events []api.Event `json:"events,omitempty"`
}

func (a *app) inspectVerb() *cli.Command {
	return &cli.Command{
		Name: "inspect", Category: "jobs", Usage: "print all about jobs, as JSON", ArgsUsage: "[flags] JOB…", Description: inspectHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "events", Usage: "also what happened to it"},
			&cli.BoolFlag{Name: "json", Usage: "always so"},
		},
		Action:        a.inspect,
		ShellComplete: a.completeJobs,
	}
}

func (a *app) inspect(ctx context.Context, cmd *cli.Command) error {
	jobs, err := refs(cmd, 0)
	if err != nil {
		return err
	}
	c := newClient(cmd)
	defer c.Close()
	all, code := []inspected{}, 0
	for _, ref := range jobs {
		one, err := inspectOne(ctx, c, ref, cmd.Bool("events"))
		if err != nil {
			code = a.firstCode(code, err)
			continue
		}
		all = append(all, one)
	}
	if err := a.printJSON(all); err != nil {
		return err
	}
	return exitCode(code)
}

func inspectOne(ctx context.Context, c *client.Client, ref string, events bool) (inspected, error) {
	job, err := c.Job(ctx, ref)
	if err != nil {
		return inspected{}, err
	}
	one := inspected{Job: job}
	if job.State == client.StateDone {
		if one.Result, _, err = c.Result(ctx, job.ID, 0); err != nil {
			return one, err
		}
	}
	if events {
		one.Events, err = eventsOf(ctx, c, job.ID)
	}
	return one, err
}

// eventsOf reads all events and keeps those of one job.
func eventsOf(ctx context.Context, c *client.Client, id string) ([]api.Event, error) {
	events, err := c.Events(ctx, client.EventOptions{})
	if err != nil {
		return nil, err
	}
	defer events.Close()
	var of []api.Event
	for {
		e, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return of, nil
		case err != nil:
			return nil, err
		case e.Job == id:
			of = append(of, e)
		}
	}
}
