package main

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

// runFlags say what a job is. Values are texts to the library; they are read here, so that an error names the flag
// and what would be right.
func runFlags() []cli.Flag {
	const job, files, limits, task = "the job", "files it sees", "limits (never more than the profile allows)", "its task"
	text := func(category, name, usage string, aliases ...string) cli.Flag {
		return &cli.StringFlag{Category: category, Name: name, Aliases: aliases, Usage: usage}
	}
	list := func(category, name, usage string, aliases ...string) cli.Flag {
		return &cli.StringSliceFlag{Category: category, Name: name, Aliases: aliases, Usage: usage}
	}
	return []cli.Flag{
		text(job, "image", "container `IMAGE` (default: the profile's)"),
		text(job, "profile", "envelope the operator offers under this `NAME`; see 'sbx profiles'", "p"),
		text(job, "name", "`NAME` of the job, for people", "n"),
		list(job, "label", "label `KEY=VALUE`", "l"),
		list(job, "env", "environment `NAME=VALUE`, or NAME to pass on the value here", "e"),
		list(job, "env-file", "`FILE` of such lines; # begins a comment"),
		text(job, "workdir", "working `DIR` in the container", "w"),
		&cli.BoolFlag{Category: job, Name: "interactive", Aliases: []string{"i"}, Usage: "forward standard input to the command"},
		text(job, "timeout", "`TIME` the command may take: 90s, 5m, 1h30m"),
		text(job, "priority", "`N` from 0 to 9; higher goes first"),
		text(job, "result", "what its result is, `exit|agent`: the exit status, or an agent's authenticated report"),

		text(files, "workspace", "folder seen at /workspace, as `DIR[:ro|overlay|rw]` (default ro)"),
		list(files, "mount", "read-only input seen at /mnt/NAME, as `PATH:NAME`", "v", "volume"),

		text(limits, "cpus", "`CORES`: 2 or 0.5"),
		text(limits, "memory", "`SIZE`: 512m, 2GiB", "m"),
		text(limits, "pids", "`N` processes and threads", "pids-limit"),
		text(limits, "nofile", "`N` open files a process"),
		text(limits, "tmp-size", "`SIZE` of /tmp"),
		text(limits, "home-size", "`SIZE` of the home folder"),
		text(limits, "out-size", "`SIZE` of /out"),
		text(limits, "disk-size", "`SIZE` of what is written elsewhere"),
		text(limits, "output-keep", "`SIZE` of output that is kept"),

		text(task, "task", "`FILE` with the request in JSON or TOML (- is standard input)"),
		text(task, "goal", "goal `TEXT` for an agent"),
		text(task, "context", "context `TEXT`"),
		text(task, "guidance", "guidance `TEXT`"),
		text(task, "role", "`ROLE`, kept with the job; it grants nothing"),
		list(task, "skill", "`SKILL`, kept with the job; it grants nothing"),
		text(task, "parent-session", "`ID` that is given back in the result"),
	}
}

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

func setWords(cmd *cli.Command, req *api.JobRequest) error {
	for flag, field := range map[string]*string{
		"image": &req.Image, "profile": &req.Profile, "name": &req.Name, "workdir": &req.Workdir, "result": &req.Result,
		"role": &req.Role, "parent-session": &req.ParentSession, "key": &req.IdempotencyKey,
	} {
		if !cmd.IsSet(flag) {
			continue
		}
		if *field = cmd.String(flag); *field == "" {
			return usage(cmd, "--%s: an empty text; leave the flag out for the default", flag)
		}
	}
	if cmd.IsSet("skill") {
		req.Skills = cmd.StringSlice("skill")
	}
	if cmd.Bool("interactive") {
		req.StdinStream = true
	}
	if req.StdinStream && len(req.Stdin) > 0 {
		return usage(cmd, "--interactive: the task file gives the standard input already")
	}
	switch {
	case req.Name != "" && (!namePattern.MatchString(req.Name) || len(req.Name) > api.MaxNameLen):
		return usage(cmd, "--name: %.80q must be 1 to %d letters, digits, _ . - and begin with a letter or digit", req.Name, api.MaxNameLen)
	case req.Workdir != "" && !filepath.IsAbs(req.Workdir):
		return usage(cmd, "--workdir: %q is a folder in the container and must begin with /, such as /workspace", req.Workdir)
	case req.Result != "":
		return oneOf(cmd, "--result", req.Result, "exit", "agent")
	}
	return nil
}

func setLabels(cmd *cli.Command, req *api.JobRequest) error {
	for _, l := range cmd.StringSlice("label") {
		key, value, _ := strings.Cut(l, "=")
		if key == "" {
			return usage(cmd, "--label: %.80q has no key; write KEY=VALUE", l)
		}
		if req.Labels == nil {
			req.Labels = map[string]string{}
		}
		req.Labels[key] = value
	}
	return nil
}

func setTask(cmd *cli.Command, req *api.JobRequest) error {
	for _, flag := range []string{"goal", "context", "guidance"} {
		if !cmd.IsSet(flag) {
			continue
		}
		if req.Task == nil {
			req.Task = &api.Task{}
		}
		field := map[string]*string{"goal": &req.Task.Goal, "context": &req.Task.Context, "guidance": &req.Task.Guidance}[flag]
		*field = cmd.String(flag)
	}
	if req.Task != nil && req.Task.Goal == "" {
		return usage(cmd, "--goal: a task needs a goal")
	}
	return nil
}

// setPlaces reads --workspace and --mount.
func setPlaces(cmd *cli.Command, req *api.JobRequest) error {
	if cmd.IsSet("workspace") {
		w, err := workspaceOf(cmd, cmd.String("workspace"))
		if err != nil {
			return err
		}
		req.Workspace = w
	}
	for _, given := range cmd.StringSlice("mount") {
		m, err := mountOf(cmd, given)
		if err != nil {
			return err
		}
		req.Mounts = append(req.Mounts, m)
	}
	return nil
}

// workspaceOf reads DIR[:MODE]. Behind the last colon stands a mode, unless a slash comes after it.
func workspaceOf(cmd *cli.Command, given string) (*api.Workspace, error) {
	w := &api.Workspace{Path: given}
	if i := strings.LastIndexByte(given, ':'); i >= 0 && !strings.Contains(given[i:], "/") {
		w.Path, w.Mode = given[:i], given[i+1:]
		if err := oneOf(cmd, "--workspace", w.Mode, "ro", "overlay", "rw"); err != nil {
			return nil, err
		}
	}
	var err error
	w.Path, err = absolute(cmd, "--workspace", w.Path)
	return w, err
}

// mountOf reads PATH:NAME, and from people used to docker PATH:/mnt/NAME:ro.
func mountOf(cmd *cli.Command, given string) (api.Mount, error) {
	text, readOnly := strings.CutSuffix(given, ":ro")
	if strings.HasSuffix(given, ":rw") {
		return api.Mount{}, usage(cmd, "--mount: %q: mounts are read-only; a folder to write to is --workspace DIR:rw", given)
	}
	i := strings.LastIndexByte(text, ':')
	if i < 0 && readOnly { // PATH:ro means the name "ro"
		text, i = given, strings.LastIndexByte(given, ':')
	}
	if i < 0 {
		return api.Mount{}, usage(cmd, "--mount: %q has no name; write PATH:NAME, to be seen at /mnt/NAME", given)
	}
	m := api.Mount{Name: strings.TrimPrefix(text[i+1:], "/mnt/")}
	if !namePattern.MatchString(m.Name) {
		return m, usage(cmd, "--mount: %q: %q is not a name; the mount is seen at /mnt/NAME", given, text[i+1:])
	}
	var err error
	m.Source, err = absolute(cmd, "--mount", text[:i])
	return m, err
}

// setLimits reads what bounds the job. Zero never means unlimited, so it is refused.
func setLimits(cmd *cli.Command, req *api.JobRequest) error {
	l := api.Limits{}
	if req.Limits != nil {
		l = *req.Limits
	}
	before := l
	for flag, field := range map[string]**api.Size{
		"memory": &l.Memory, "tmp-size": &l.TmpBytes, "home-size": &l.HomeBytes, "out-size": &l.OutBytes,
		"disk-size": &l.DiskBytes, "output-keep": &l.OutputKeep,
	} {
		if err := amount(cmd, flag, field, api.ParseSize); err != nil {
			return err
		}
	}
	for flag, field := range map[string]**api.Int{"pids": &l.Pids, "nofile": &l.Nofile} {
		if err := amount(cmd, flag, field, parseInt); err != nil {
			return err
		}
	}
	if err := amount(cmd, "cpus", &l.CPUs, api.ParseCPUs); err != nil {
		return err
	}
	if l != before {
		req.Limits = &l
	}
	return nil
}

// setNumbers reads --timeout and --priority.
func setNumbers(cmd *cli.Command, req *api.JobRequest) error {
	if err := amount(cmd, "timeout", &req.Timeout, api.ParseDuration); err != nil {
		return err
	}
	if cmd.IsSet("priority") {
		n, err := strconv.Atoi(cmd.String("priority"))
		if err != nil || n < 0 || n > 9 {
			return usage(cmd, "--priority: %.40q is not a whole number from 0 to 9", cmd.String("priority"))
		}
		req.Priority = &n
	}
	return nil
}

func amount[T ~int64](cmd *cli.Command, flag string, field **T, parse func(string) (T, error)) error {
	if !cmd.IsSet(flag) {
		return nil
	}
	v, err := parse(cmd.String(flag))
	switch {
	case err != nil:
		return usage(cmd, "--%s: %v", flag, err)
	case v <= 0:
		return usage(cmd, "--%s: 0 is not an amount; leave the flag out for the profile's", flag)
	}
	*field = &v
	return nil
}

func parseInt(s string) (api.Int, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%.40q is not a whole number", s)
	}
	return api.Int(n), nil
}

// absoluteFrom resolves a path against a folder; "" is the present one.
func absoluteFrom(dir, path string) (string, error) {
	if filepath.IsAbs(path) || dir == "" {
		return filepath.Abs(path)
	}
	return filepath.Abs(filepath.Join(dir, path))
}

// readUpTo reads all of r, which must not exceed limit bytes.
func readUpTo(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, fmt.Errorf("more than %d bytes", limit)
	}
	return b, err
}

// addAll copies src over dst, which it makes where needed.
func addAll(dst *map[string]string, src map[string]string) {
	if *dst == nil && len(src) > 0 {
		*dst = map[string]string{}
	}
	maps.Copy(*dst, src)
}
