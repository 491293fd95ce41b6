package main

import (
	"context"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
	"sandboxd/client"
)

const freezeHelp = `
Lets nothing more start: no job under a profile, none in the tree of a job, or none at all. Jobs that run go on; a
request is denied (frozen) until 'sbx thaw'. It holds over restarts of the daemon, and is for the operator. Without a
scope it lists what is frozen. With --json, one JSON array of what is frozen then.

examples:
  sbx freeze --tree 0191e0c2
  sbx freeze`

const thawHelp = `
Ends a freeze of the same scope. With --json, one JSON array of what stays frozen.

examples:
  sbx thaw --profile builder
  sbx thaw --all`

func scopeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "everything"},
		&cli.StringFlag{Name: "profile", Usage: "jobs under the profile of this `NAME`"},
		&cli.StringFlag{Name: "tree", Usage: "the tree of this `JOB`"},
		&cli.BoolFlag{Name: "json", Usage: "one JSON array"},
	}
}

func (a *app) freezeVerb() *cli.Command {
	return &cli.Command{
		Name: "freeze", Category: "daemon", Usage: "let no more jobs start", ArgsUsage: "[--all | --profile NAME | --tree JOB]",
		Description: freezeHelp, Flags: scopeFlags(), Action: a.freeze,
	}
}

func (a *app) thawVerb() *cli.Command {
	return &cli.Command{
		Name: "thaw", Category: "daemon", Usage: "end a freeze", ArgsUsage: "--all | --profile NAME | --tree JOB",
		Description: thawHelp, Flags: scopeFlags(), Action: a.thaw,
	}
}

func (a *app) freeze(ctx context.Context, cmd *cli.Command) error {
	order, given, err := orderOf(cmd)
	if err != nil {
		return err
	}
	return a.freezes(cmd, func(c *client.Client) ([]api.Freeze, error) {
		if !given {
			return c.Frozen(ctx)
		}
		return c.Freeze(ctx, order)
	})
}

func (a *app) thaw(ctx context.Context, cmd *cli.Command) error {
	order, given, err := orderOf(cmd)
	if err == nil && !given {
		err = usage(cmd, "say what to thaw: --all, --profile NAME or --tree JOB; 'sbx freeze' lists what is frozen")
	}
	if err != nil {
		return err
	}
	return a.freezes(cmd, func(c *client.Client) ([]api.Freeze, error) { return c.Thaw(ctx, order) })
}

// orderOf reads the scope.
func orderOf(cmd *cli.Command) (o api.FreezeRequest, given bool, err error) {
	if err := noArgs(cmd); err != nil {
		return o, false, err
	}
	var flags []string
	if cmd.Bool("all") {
		o.Scope, flags = api.FreezeAll, append(flags, "--all")
	}
	for _, scope := range []string{api.FreezeProfile, api.FreezeTree} {
		if !cmd.IsSet(scope) {
			continue
		}
		if cmd.String(scope) == "" {
			return o, false, usage(cmd, "--%s: an empty text names nothing", scope)
		}
		o.Scope, o.Name, flags = scope, cmd.String(scope), append(flags, "--"+scope)
	}
	if len(flags) > 1 {
		return o, false, usage(cmd, "%s: choose one", strings.Join(flags, " and "))
	}
	return o, len(flags) > 0, nil
}

// freezes asks the daemon and shows what is frozen then.
func (a *app) freezes(cmd *cli.Command, ask func(*client.Client) ([]api.Freeze, error)) error {
	c := newClient(cmd)
	defer c.Close()
	list, err := ask(c)
	if err != nil {
		return err
	}
	if cmd.Bool("json") {
		if list == nil {
			list = []api.Freeze{}
		}
		return a.printJSON(list)
	}
	if len(list) == 0 {
		_, err := a.stdout.Write([]byte("nothing is frozen\n"))
		return err
	}
	rows := make([][]cell, 0, len(list))
	for _, f := range list {
		rows = append(rows, []cell{
			{text: clean(f.Scope)}, {text: orDash(clean(f.Name))}, {text: orDash(clean(f.By))}, {text: ago(f.Since, time.Now())},
		})
	}
	return a.table([]string{"SCOPE", "NAME", "BY", "AGE"}, rows)
}
