package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
	"sandboxd/client"
)

// liveStates are those of a job that has not ended.
var liveStates = []string{"queued", "starting", "running", "waiting", "finishing"}

const psHelp = `
Lists your jobs, newest first: those that have not ended, or all with -a. With --json, one JSON array.

examples:
  sbx ps
  sbx ps -a -f label=team=ml -f state=done
  sbx cancel $(sbx ps -q)`

func (a *app) psVerb() *cli.Command {
	return &cli.Command{
		Name: "ps", Category: "jobs", Usage: "list jobs", ArgsUsage: "[flags]", Description: psHelp,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also jobs that have ended"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "only ids, whole"},
			&cli.StringSliceFlag{
				Name: "filter", Aliases: []string{"f"},
				Usage: "only jobs with `KEY=VALUE`: state=…, name=…, label=K=V, root=ID, parent=ID",
			},
			&cli.StringFlag{Name: "limit", Aliases: []string{"n"}, Usage: "at most `N` jobs"},
			&cli.BoolFlag{Name: "no-trunc", Usage: "whole ids and commands"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON array"},
		},
		Action: a.ps,
	}
}

func (a *app) ps(ctx context.Context, cmd *cli.Command) error {
	if err := noArgs(cmd); err != nil {
		return err
	}
	filter, limit, err := psFilter(cmd)
	if err != nil {
		return err
	}
	c := newClient(cmd)
	defer c.Close()
	jobs, err := listJobs(ctx, c, filter, limit)
	if err != nil {
		return err
	}
	switch {
	case cmd.Bool("json"):
		return a.printJSON(jobs)
	case cmd.Bool("quiet"):
		for _, j := range jobs {
			if _, err := fmt.Fprintln(a.stdout, clean(j.ID)); err != nil {
				return err
			}
		}
		return nil
	}
	return a.jobTable(jobs, cmd.Bool("no-trunc"))
}

func psFilter(cmd *cli.Command) (f client.JobFilter, limit int, err error) {
	for _, given := range cmd.StringSlice("filter") {
		key, value, ok := strings.Cut(given, "=")
		if !ok || value == "" {
			return f, 0, usage(cmd, "--filter: %.80q is not KEY=VALUE, such as state=running", given)
		}
		switch key {
		case "state":
			states := append(slices.Clone(liveStates), client.StateDone)
			if err := oneOf(cmd, "--filter state", value, states...); err != nil {
				return f, 0, err
			}
			f.States = append(f.States, value)
		case "name":
			f.Name = value
		case "root":
			f.Root = value
		case "parent":
			f.Parent = value
		case "label":
			k, v, _ := strings.Cut(value, "=")
			addAll(&f.Labels, map[string]string{k: v})
		default:
			return f, 0, oneOf(cmd, "--filter", key, "state", "name", "label", "root", "parent")
		}
	}
	if len(f.States) == 0 && !cmd.Bool("all") {
		f.States = liveStates
	}
	if given := cmd.String("limit"); cmd.IsSet("limit") {
		if limit, err = strconv.Atoi(given); err != nil || limit < 1 {
			return f, 0, usage(cmd, "--limit: %.40q is not a whole number from 1 on", given)
		}
	}
	return f, limit, nil
}

// listJobs reads page after page, up to limit jobs; 0 is all.
func listJobs(ctx context.Context, c *client.Client, f client.JobFilter, limit int) ([]api.Job, error) {
	jobs := []api.Job{}
	for {
		f.Limit = api.MaxListLimit
		if limit > 0 {
			f.Limit = min(f.Limit, limit-len(jobs))
		}
		page, err := c.Jobs(ctx, f)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, page.Jobs...)
		if limit > 0 && len(jobs) >= limit {
			return jobs[:limit], nil
		}
		if page.Next == "" || page.Next == f.Before {
			return jobs, nil
		}
		f.Before = page.Next
	}
}

func (a *app) jobTable(jobs []api.Job, whole bool) error {
	now := time.Now()
	rows := make([][]cell, 0, len(jobs))
	for _, j := range jobs {
		id, command, name := shortID(j.ID), clean(commandLine(j.Command)), clean(j.Name)
		if whole {
			id = clean(j.ID)
		} else {
			command, name = cut(command, 48), cut(name, 24)
		}
		state, colour := stateOf(j)
		rows = append(rows, []cell{
			{text: id}, {text: orDash(name)}, {clean(state), colour}, {text: orDash(clean(j.Profile))},
			{text: ago(j.Timings.Queued, now)}, {text: command},
		})
	}
	return a.table([]string{"JOB", "NAME", "STATE", "PROFILE", "AGE", "COMMAND"}, rows)
}

// stateOf is a job's state, or how it ended once it has.
func stateOf(j api.Job) (text, colour string) {
	o := j.Outcome
	switch {
	case o == nil && j.Cancelling != "":
		return j.State + ", cancelling", grey
	case o == nil:
		return j.State, stateColour(j.State)
	case o.ExitCode != nil && *o.ExitCode != 0:
		return fmt.Sprintf("%s (%d)", o.Status, *o.ExitCode), stateColour(o.Status)
	}
	return o.Status, stateColour(o.Status)
}

// commandLine writes a command so that a shell would read it again.
func commandLine(command []string) string {
	quoted := make([]string, len(command))
	for i, word := range command {
		quoted[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$`*?[]{}();&|<>~#!") {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
