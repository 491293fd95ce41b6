package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

const runHelp = `
Runs COMMAND as one job and, in the foreground, passes its stdout and stderr on as they come, byte by byte. sbx ends
with the command's exit code, or 120 denied, 121 budget exhausted, 122 unverified, 123 lost or cancelled, 124 timeout,
125 fault of the daemon, 126 not executable, 127 not found, 128+n died of signal n, 130 Ctrl-C. How a job ended, unless
it succeeded, stands on stderr. A command line that makes no sense ends with 2, and nothing was sent.

The first Ctrl-C cancels the job with grace, the second kills it. When sbx itself goes away, so does the job.
With --json, stdout is one JSON document, the result (or the problem), and the job's output goes to stderr.
A task file holds the same fields as the flags, in JSON or TOML; flags override it, and -e, -l, -v add to it.
A file .sandboxd.toml in the workspace's root may hold limits, timeout, budget, trust, max_risk and tools; it only narrows.
Inside a job, sbx run starts a child of that job, which never gets more than the job has; paths are the container's.
The keys of --budget are wall=TIME, cpu=TIME, egress=SIZE, output=SIZE, artifacts=SIZE, input-tokens=N,
output-tokens=N, tool-calls=N and cost=USD.

examples:
  sbx run echo hello
  sbx run --workspace .:ro -w /workspace -m 512m --timeout 5m make test
  sbx run -e TOKEN -e MODE=fast -v /data/in:in sh -c 'wc -l /mnt/in/*'
  echo hello | sbx run -i tr a-z A-Z
  sbx run --task job.toml --json | jq .usage
  sbx run -p reviewer --trust untrusted --budget cpu=30s,output=10MiB ./review
  for i in 1 2 3; do sbx run --name demo-$i --label-output ./step $i & done; wait`

// runOptions are how sbx shows a job; the request says what the job is.
type runOptions struct {
	detach, json, quiet, exitStatus bool
	prefix                          string
	nameLines                       bool // prefix lines with the job's name or id
	interactive                     bool
}

func (a *app) runVerb() *cli.Command {
	return &cli.Command{
		Name: "run", Category: "jobs", Usage: "run a command in a sandbox",
		ArgsUsage: "[flags] [--] COMMAND [ARG…]", Description: runHelp,
		StopOnNthArg: ptr(1),
		Flags:        slices.Concat(runFlags(), narrowFlags(), runModeFlags()),
		Action:       a.runJob,
	}
}

func runModeFlags() []cli.Flag {
	const how = "how it is shown"
	return []cli.Flag{
		&cli.BoolFlag{Category: how, Name: "detach", Aliases: []string{"d"}, Usage: "print the job's id and leave it running"},
		&cli.BoolFlag{Category: how, Name: "json", Usage: "print the result as one JSON document; the job's output goes to stderr"},
		&cli.BoolFlag{Category: how, Name: "quiet", Aliases: []string{"q"}, Usage: "do not show the job's output; 'sbx logs' has it"},
		&cli.StringFlag{Category: how, Name: "prefix", Usage: "put `LABEL` before every line of output"},
		&cli.BoolFlag{Category: how, Name: "label-output", Usage: "put the job's name or id before every line of output"},
		&cli.BoolFlag{
			Category: how, Name: "exit-status",
			Usage: "end with 0 success or iteration partial, 1 error, 2 timeout or time partial, 3 not set up, 4 budget exhausted",
		},
		&cli.StringFlag{Category: how, Name: "key", Usage: "idempotency `KEY`: the same key names the same job again"},
	}
}

func (a *app) runJob(ctx context.Context, cmd *cli.Command) error {
	command, err := a.commandOf(cmd)
	if err != nil {
		return err
	}
	opts, err := runOptionsOf(cmd)
	if err != nil {
		return err
	}
	req, err := a.requestOf(cmd, command)
	if err != nil {
		return err
	}
	if opts.interactive = req.StdinStream; opts.interactive && opts.detach {
		return usage(cmd, "--interactive forwards standard input and --detach leaves at once; choose one")
	}
	if opts.interactive && cmd.String("task") == "-" {
		return usage(cmd, "--task - and --interactive both want standard input; choose one")
	}
	c := newClient(cmd)
	defer c.Close()
	if opts.detach {
		job, err := c.Submit(ctx, req)
		if err != nil {
			return err
		}
		if opts.json {
			return a.printJSON(job)
		}
		_, err = fmt.Fprintln(a.stdout, clean(job.ID))
		return err
	}
	req.Lease = true
	return a.foreground(ctx, c, req, opts)
}

func runOptionsOf(cmd *cli.Command) (runOptions, error) {
	o := runOptions{
		detach: cmd.Bool("detach"), json: cmd.Bool("json"), quiet: cmd.Bool("quiet"), exitStatus: cmd.Bool("exit-status"),
		prefix: cmd.String("prefix"), nameLines: cmd.Bool("label-output"),
	}
	if o.prefix != "" && o.nameLines {
		return o, usage(cmd, "--prefix and --label-output both name the lines; choose one")
	}
	for _, flag := range []string{"quiet", "exit-status", "prefix", "label-output"} {
		if o.detach && cmd.IsSet(flag) {
			return o, usage(cmd, "--%s means nothing with --detach, which shows no output and no end", flag)
		}
	}
	return o, nil
}

// commandOf returns the command exactly as it was typed. The library drops a "--" that is the command's first
// argument, as in `sbx run git -- log`; it is put back from the arguments themselves.
func (a *app) commandOf(cmd *cli.Command) ([]string, error) {
	command := cmd.Args().Slice()
	tail := a.args[max(0, len(a.args)-len(command)):]
	explicit := len(a.args) > len(command) && a.args[len(a.args)-len(command)-1] == "--"
	if !slices.Equal(tail, command) && len(tail) > 0 && strings.TrimSpace(tail[0]) == "--" {
		command = slices.Insert(command, 1, tail[0])
	}
	if len(command) == 0 {
		if !cmd.IsSet("task") {
			return nil, usage(cmd, "no command was given: sbx run [flags] [--] COMMAND [ARG…]")
		}
		return nil, nil
	}
	switch first := command[0]; {
	case first == "":
		return nil, usage(cmd, "the command is an empty text; give the program's name")
	case strings.TrimSpace(first) == "":
		return nil, usage(cmd, "the command %q is blank; give the program's name", first)
	case first[0] == '-' && !explicit:
		return nil, usage(cmd, "there is no flag %q; put -- before a command of that name", first)
	}
	return command, nil
}

// requestOf makes the request from the task file and the flags.
func (a *app) requestOf(cmd *cli.Command, command []string) (api.JobRequest, error) {
	req, err := a.taskFile(cmd)
	if err != nil {
		return req, err
	}
	if len(command) > 0 {
		req.Command = command
	}
	if len(req.Command) == 0 || req.Command[0] == "" {
		return req, usage(cmd, "neither the command line nor the task file %s has a command", cmd.String("task"))
	}
	for _, step := range []func(*cli.Command, *api.JobRequest) error{
		setWords, setEnv, setLabels, setTask, setPlaces, setLimits, setNumbers, setNarrow, setBudget, setProject,
	} {
		if err := step(cmd, &req); err != nil {
			return req, err
		}
	}
	return req, nil
}

// absolute resolves a path of the command line.
func absolute(cmd *cli.Command, flag, path string) (string, error) {
	if path == "" {
		return "", usage(cmd, "%s: an empty path; write . for this folder", flag)
	}
	abs, err := absoluteFrom("", path)
	if err != nil {
		return "", usage(cmd, "%s: %q cannot be made absolute: %v", flag, path, err)
	}
	return abs, nil
}

// readFile reads a file of the command line, or standard input for "-", up to limit bytes.
func (a *app) readFile(path string, limit int64) ([]byte, error) {
	f := a.stdin
	if path != "-" {
		var err error
		if f, err = os.Open(path); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	return readUpTo(f, limit)
}
