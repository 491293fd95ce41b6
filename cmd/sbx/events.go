package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
	"sandboxd/client"
)

const eventsHelp = `
Prints what happened to your jobs, one event a line, numbered. --job keeps those of one job. With --json, one JSON
object a line.

examples:
  sbx events -f
  sbx events --after 1041 --json`

func (a *app) eventsVerb() *cli.Command {
	return &cli.Command{
		Name: "events", Category: "jobs", Usage: "print what happened", ArgsUsage: "[flags]", Description: eventsHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what happens next"},
			&cli.StringFlag{Name: "after", Usage: "only events after number `N`"},
			&cli.StringFlag{Name: "job", Usage: "only events of `JOB`"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line"},
		},
		Action: a.events,
	}
}

func (a *app) events(ctx context.Context, cmd *cli.Command) error {
	if err := noArgs(cmd); err != nil {
		return err
	}
	o := client.EventOptions{Follow: cmd.Bool("follow")}
	if cmd.IsSet("after") {
		n, err := strconv.ParseInt(cmd.String("after"), 10, 64)
		if err != nil || n < 0 {
			return usage(cmd, "--after: %.40q is not the number of an event", cmd.String("after"))
		}
		o.After = n
	}
	c := newClient(cmd)
	defer c.Close()
	only := ""
	if cmd.IsSet("job") {
		job, err := c.Job(ctx, cmd.String("job"))
		if err != nil {
			return err
		}
		only = job.ID
	}
	events, err := c.Events(ctx, o)
	if err != nil {
		return err
	}
	defer events.Close()
	return a.printEvents(events, only, cmd.Bool("json"))
}

func (a *app) printEvents(events *client.Events, only string, asJSON bool) error {
	for {
		e, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case only != "" && e.Job != only:
			continue
		case asJSON:
			err = a.printLine(e)
		default:
			_, err = fmt.Fprintln(a.stdout, eventLine(e))
		}
		if err != nil {
			return err
		}
	}
}

func eventLine(e api.Event) string {
	var payload strings.Builder
	for _, k := range slices.Sorted(maps.Keys(e.Payload)) {
		fmt.Fprintf(&payload, " %s=%s", k, e.Payload[k])
	}
	at := time.UnixMilli(e.Time).Format("2006-01-02T15:04:05.000Z07:00")
	return clean(fmt.Sprintf("%d %s %s %s%s", e.Seq, at, e.Job, e.Type, payload.String()))
}
