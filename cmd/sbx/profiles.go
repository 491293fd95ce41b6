package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

const profilesHelp = `
Lists the envelopes the operator offers, or with a NAME shows what that one allows and where each value comes from.
With --json, one JSON array.

examples:
  sbx profiles
  sbx profiles default`

func (a *app) profilesVerb() *cli.Command {
	return &cli.Command{
		Name: "profiles", Category: "daemon", Usage: "list what jobs may run under", ArgsUsage: "[flags] [NAME]", Description: profilesHelp,
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "one JSON array"}},
		Action: a.profiles,
	}
}

func (a *app) profiles(ctx context.Context, cmd *cli.Command) error {
	if cmd.Args().Len() > 1 {
		return usage(cmd, "takes one name; %d were given", cmd.Args().Len())
	}
	c := newClient(cmd)
	defer c.Close()
	profiles, err := c.Profiles(ctx)
	if err != nil {
		return err
	}
	name := cmd.Args().First()
	if name != "" {
		if profiles, err = onlyProfile(profiles, name); err != nil {
			return err
		}
	}
	switch {
	case cmd.Bool("json"):
		if profiles == nil {
			profiles = []api.Profile{}
		}
		return a.printJSON(profiles)
	case name != "":
		return a.profileTable(profiles[0])
	}
	rows := make([][]cell, 0, len(profiles))
	for _, p := range profiles {
		rows = append(rows, []cell{{text: clean(p.Name)}, {text: clean(p.Description)}})
	}
	return a.table([]string{"PROFILE", "DESCRIPTION"}, rows)
}

func onlyProfile(profiles []api.Profile, name string) ([]api.Profile, error) {
	var names []string
	for _, p := range profiles {
		if p.Name == name {
			return []api.Profile{p}, nil
		}
		names = append(names, p.Name)
	}
	hint := "'sbx profiles' lists them"
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, notFound(fmt.Sprintf("there is no profile %.64q", name), hint)
}

func (a *app) profileTable(p api.Profile) error {
	rows := make([][]cell, 0, len(p.Fields))
	for _, f := range p.Fields {
		rows = append(rows, []cell{{text: clean(f.Field)}, {text: clean(f.Value)}, {text: clean(f.Origin)}})
	}
	return a.table([]string{"FIELD", "VALUE", "FROM"}, rows)
}
