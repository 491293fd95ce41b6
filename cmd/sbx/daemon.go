package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
	"sandboxd/client"
)

const statusHelp = `
Tells whether the daemon and its container engine are up. Exit code 0: both are; 3: the daemon is down, or the socket
belongs to something else; 4: the daemon is up and the engine is not; 125: it cannot be told, as without permission.
With --json, one JSON document.`

func (a *app) daemonVerb() *cli.Command {
	return &cli.Command{
		Name: "daemon", Category: "daemon", Usage: "tell how the daemon is ('sbx daemon status')", ArgsUsage: "status [flags]",
		Commands: []*cli.Command{{
			Name: "status", Usage: "tell whether the daemon and its engine are up", ArgsUsage: "[flags]", Description: statusHelp,
			Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "one JSON document"}},
			Action: a.daemonStatus,
		}},
		Action: func(_ context.Context, cmd *cli.Command) error {
			return &usageError{text: fmt.Sprintf("daemon: %q is none of its verbs", cmd.Args().First()), meant: "sbx daemon status"}
		},
	}
}

// status is the document of daemon status --json.
type status struct {
	Up     bool             `json:"up"`
	Engine bool             `json:"engine_up"`
	Socket string           `json:"socket"`
	Error  string           `json:"error,omitempty"`
	Daemon *api.VersionInfo `json:"daemon,omitempty"`
	Health *api.Health      `json:"health,omitempty"`
}

func (a *app) daemonStatus(ctx context.Context, cmd *cli.Command) error {
	if err := noArgs(cmd); err != nil {
		return err
	}
	c := newClient(cmd)
	defer c.Close()
	s, code, err := askStatus(ctx, c)
	if cmd.Bool("json") {
		if err := a.printJSON(s); err != nil {
			return err
		}
	} else if s.Up {
		if _, err := a.stdout.Write([]byte(s.text(a.stdout))); err != nil {
			return err
		}
	}
	if err != nil {
		a.end(err)
	}
	return exitCode(code)
}

func askStatus(ctx context.Context, c *client.Client) (s status, code int, err error) {
	s.Socket = c.Socket()
	if s.Daemon, err = c.Version(ctx); err == nil {
		s.Health, err = c.Health(ctx)
	}
	switch {
	case errors.Is(err, client.ErrPermission):
		s.Error = err.Error()
		return s, exitDaemon, err
	case err != nil:
		s.Error = err.Error()
		return s, exitDown, err
	}
	s.Up, s.Engine = true, s.Health.Engine.Up
	if !s.Engine {
		return s, exitEngineDown, fmt.Errorf("the daemon is up, but its container engine is not: %s", s.Health.Engine.Error)
	}
	return s, 0, nil
}

func (s status) text(o *output) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s %s\n", name, clean(fmt.Sprintf(format, args...)))
	}
	h := s.Health
	colour := green
	if h.Status != "ok" {
		colour = yellow
	}
	since := ""
	if h.UptimeMS > 0 {
		since = ", up " + span(h.UptimeMS)
	}
	fmt.Fprintf(&b, "%-8s %s\n", "daemon", o.paint(colour, clean(h.Status))+clean(fmt.Sprintf(
		", version %s%s, on %s", s.Daemon.Version, since, s.Socket)))
	switch {
	case !h.Engine.Up:
		line("engine", "down: %s", h.Engine.Error)
	case h.Engine.Version == "": // what a job is not told
		line("engine", "up")
	default:
		line("engine", "up, version %s, API %s", h.Engine.Version, h.Engine.API)
	}
	if h.MaxRunning > 0 {
		line("jobs", "%d running of at most %d, %d queued", h.Running, h.MaxRunning, h.Queued)
	}
	var mine []string
	for _, state := range slices.Sorted(maps.Keys(h.Jobs)) {
		mine = append(mine, fmt.Sprintf("%d %s", h.Jobs[state], state))
	}
	if len(mine) > 0 {
		line("yours", "%s", strings.Join(mine, ", "))
	}
	if h.Cleanups > 0 {
		line("cleanups", "%d pending", h.Cleanups)
	}
	for _, n := range h.Notes {
		line("note", "%s", n)
	}
	return b.String()
}
