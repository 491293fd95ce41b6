package main

import (
	"strings"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

// narrowFlags bound what a job may do and spend, below what its parent or profile allows.
func narrowFlags() []cli.Flag {
	const may, spend = "what it may do (never more than its parent or profile)", "what it may spend, with all its descendants"
	text := func(category, name, usage string) cli.Flag {
		return &cli.StringFlag{Category: category, Name: name, Usage: usage}
	}
	list := func(category, name, usage string) cli.Flag {
		return &cli.StringSliceFlag{Category: category, Name: name, Usage: usage}
	}
	return []cli.Flag{
		text(may, "trust", "whether it is `trusted|untrusted`"),
		text(may, "max-risk", "at most this `RISK`: safe, local_write, install, network_egress, …"),
		list(may, "allow-tool", "only this `TOOL` and others allowed so, for an agent"),
		list(may, "deny-tool", "not this `TOOL`"),
		text(may, "model", "`MODEL` an agent uses"),
		text(may, "egress", "network policy: `none`"),
		text(may, "max-depth", "`N` levels of jobs below it"),
		text(may, "max-children", "`N` jobs in its tree, ever"),
		text(may, "delegates", "`PROFILES` its children may have, with commas between them; none: it may not delegate"),
		&cli.BoolFlag{Category: may, Name: "no-project", Usage: "do not read " + api.ProjectFile + " of the workspace"},

		list(spend, "budget", "amounts, as `KEY=AMOUNT,…`; the keys are listed above"),
		&cli.BoolFlag{Category: spend, Name: "strict-budget", Usage: "deny the job where less than that is left, rather than cut it"},
	}
}

// setNarrow reads them.
func setNarrow(cmd *cli.Command, req *api.JobRequest) error {
	for flag, field := range map[string]*string{"trust": &req.Trust, "max-risk": &req.MaxRisk, "model": &req.Model} {
		if !cmd.IsSet(flag) {
			continue
		}
		if *field = cmd.String(flag); *field == "" {
			return usage(cmd, "--%s: an empty text; leave the flag out for the parent's", flag)
		}
	}
	if err := setTools(cmd, req); err != nil {
		return err
	}
	if cmd.IsSet("egress") {
		if cmd.String("egress") != "none" {
			return usage(cmd, "--egress: %.40q is not a policy to ask for; write none, or leave the flag out for the parent's", cmd.String("egress"))
		}
		req.Egress = &api.Egress{Mode: "none"}
	}
	if err := count(cmd, "max-depth", &req.MaxDepth); err != nil {
		return err
	}
	if err := count(cmd, "max-children", &req.MaxTreeJobs); err != nil {
		return err
	}
	return setDelegates(cmd, req)
}

func count(cmd *cli.Command, flag string, field **api.Int) error {
	return amount(cmd, flag, field, parseInt)
}

func setTools(cmd *cli.Command, req *api.JobRequest) error {
	for flag, list := range map[string]func(*api.Tools) *[]string{
		"allow-tool": func(t *api.Tools) *[]string { return &t.Allow },
		"deny-tool":  func(t *api.Tools) *[]string { return &t.Deny },
	} {
		if !cmd.IsSet(flag) {
			continue
		}
		if req.Tools == nil {
			req.Tools = &api.Tools{}
		}
		for _, tool := range cmd.StringSlice(flag) {
			if tool == "" {
				return usage(cmd, "--%s: an empty text is no tool", flag)
			}
		}
		*list(req.Tools) = cmd.StringSlice(flag)
	}
	return nil
}

func setDelegates(cmd *cli.Command, req *api.JobRequest) error {
	if !cmd.IsSet("delegates") {
		return nil
	}
	req.Delegates = []string{}
	if cmd.String("delegates") == "none" {
		return nil
	}
	for name := range strings.SplitSeq(cmd.String("delegates"), ",") {
		if !namePattern.MatchString(name) {
			return usage(cmd, "--delegates: %.80q is not the name of a profile; write NAME,NAME or none", name)
		}
		req.Delegates = append(req.Delegates, name)
	}
	return nil
}
