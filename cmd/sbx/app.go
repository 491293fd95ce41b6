package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/urfave/cli/v3"

	"sandboxd/client"
)

// app is one run of sbx.
type app struct {
	args   []string
	stdin  *os.File
	stdout *output
	stderr *output

	json     bool        // the verb was asked for JSON, so errors go to stdout too, as a problem document
	failed   error       // from where the library lets none be returned
	spinning atomic.Bool // a spinner stands on the present line of stderr
}

// output is one of the two ways out.
type output struct {
	f      *os.File
	colour bool // a terminal that wants colours and a spinner
	used   atomic.Bool
}

func (o *output) Write(p []byte) (int, error) {
	o.used.Store(true)
	return o.f.Write(p)
}

func (a *app) run(ctx context.Context) int {
	if err := a.root().Run(ctx, a.args); err != nil {
		return a.end(err)
	}
	return a.end(a.failed)
}

func (a *app) root() *cli.Command {
	root := &cli.Command{
		Name:  "sbx",
		Usage: "run commands in the sandboxes of the sandboxd daemon",
		Commands: []*cli.Command{
			a.runVerb(), a.psVerb(), a.treeVerb(), a.logsVerb(), a.waitVerb(), a.resultVerb(), a.inspectVerb(), a.cancelVerb(), a.eventsVerb(),
			a.profilesVerb(), a.freezeVerb(), a.thawVerb(), a.daemonVerb(), a.versionVerb(), a.completionVerb(),
		},
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "socket", Usage: "socket `PATH` of the daemon (default $" + client.SocketEnv + ", then " + client.DefaultSocket + ")"},
			&cli.BoolFlag{Name: "version", Usage: "the same as 'sbx version'", Local: true},
		},
		StopOnNthArg:               ptr(1),
		Action:                     a.noVerb,
		CommandNotFound:            func(_ context.Context, c *cli.Command, name string) { a.failed = unknownVerb(c, name) }, // 'sbx help NAME'
		ExitErrHandler:             func(context.Context, *cli.Command, error) {},
		EnableShellCompletion:      os.Getenv(completeEnv) != "",
		ShellCompletionCommandName: "cli-completion", // hidden; ours is the verb 'completion'
		Writer:                     a.stdout,
		ErrWriter:                  a.stderr,
	}
	a.adopt(root)
	root.CustomRootCommandHelpTemplate = rootHelp(root)
	return root
}

// adopt sets on a command and those below it what holds for all of them.
func (a *app) adopt(cmd *cli.Command) {
	cmd.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error { return usageOf(c, err) }
	cmd.DisableSliceFlagSeparator = true
	cmd.UseShortOptionHandling = true
	for _, sub := range cmd.Commands {
		sub.HideHelpCommand = true // 'help' is an argument like any other there
		sub.Before = func(ctx context.Context, c *cli.Command) (context.Context, error) {
			a.json = c.Bool("json")
			return ctx, nil
		}
		a.adopt(sub)
		sub.CustomHelpTemplate = verbHelp(cmd.Name, sub)
	}
}

// noVerb runs when no verb was recognised.
func (a *app) noVerb(ctx context.Context, cmd *cli.Command) error {
	if cmd.Bool("version") {
		return a.version(ctx, cmd)
	}
	if !cmd.Args().Present() {
		return cli.ShowRootCommandHelp(cmd)
	}
	return unknownVerb(cmd, cmd.Args().First())
}

// otherNames are verbs that people know from elsewhere.
var otherNames = map[string]string{
	"attach": "logs -f", "create": "run -d", "exec": "run", "kill": "cancel --kill", "list": "ps", "ls": "ps", "log": "logs",
	"start": "run", "status": "daemon status", "stop": "cancel", "rm": "cancel", "submit": "run -d", "info": "daemon status",
	"show": "inspect", "health": "daemon status", "tail": "logs -f", "pstree": "tree", "pause": "freeze", "unpause": "thaw",
	"unfreeze": "thaw", "resume": "thaw",
}

func unknownVerb(root *cli.Command, name string) error {
	e := &usageError{text: fmt.Sprintf("there is no verb %q", name), help: "sbx help"}
	if other, ok := otherNames[name]; ok {
		e.meant = "sbx " + other
	} else if near := nearest(name, verbNames(root)); near != "" {
		e.meant = "sbx " + near
	}
	return e
}

func verbNames(root *cli.Command) []string {
	var names []string
	for _, c := range root.Commands {
		names = append(names, c.Names()...)
	}
	return names
}

func newClient(cmd *cli.Command) *client.Client {
	return client.New(client.Options{Socket: cmd.String("socket")})
}

// refs returns the job references a verb was given: one at least, and at most most unless that is 0.
func refs(cmd *cli.Command, most int) ([]string, error) {
	args := cmd.Args().Slice()
	switch {
	case len(args) == 0:
		return nil, usage(cmd, "name a job by its id, the beginning of its id, or its name")
	case most > 0 && len(args) > most:
		return nil, usage(cmd, "takes one job; %d were given: %s", len(args), strings.Join(args, " "))
	case slices.Contains(args, ""):
		return nil, usage(cmd, "an empty text names no job")
	}
	return args, nil
}

// noArgs refuses arguments where a verb takes none.
func noArgs(cmd *cli.Command) error {
	if cmd.Args().Present() {
		return usage(cmd, "takes no arguments; %q was given", cmd.Args().First())
	}
	return nil
}

func ptr[T any](v T) *T { return &v }
