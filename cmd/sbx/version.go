package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

// version of this client; a release sets it with -ldflags "-X main.version=…".
var version = "dev"

const versionHelp = `
Tells which sbx this is (other products have a command of that name, too), and which daemon it talks to.`

func (a *app) versionVerb() *cli.Command {
	return &cli.Command{
		Name: "version", Category: "daemon", Usage: "tell the versions of client and daemon", ArgsUsage: "[flags]", Description: versionHelp,
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "one JSON document"}},
		Action: a.version,
	}
}

// versions is the document of version --json.
type versions struct {
	Client struct {
		Product string `json:"product"`
		Program string `json:"program"`
		Version string `json:"version"`
		API     int    `json:"api"`
		Go      string `json:"go"`
	} `json:"client"`
	Socket      string           `json:"socket"`
	Daemon      *api.VersionInfo `json:"daemon"` // null when it cannot be reached
	DaemonError string           `json:"daemon_error,omitempty"`
}

// version succeeds without a daemon, too: which client this is, is then the more useful to know.
func (a *app) version(ctx context.Context, cmd *cli.Command) error {
	if err := noArgs(cmd); err != nil {
		return err
	}
	asJSON := cmd.Bool("json")
	c := newClient(cmd)
	defer c.Close()
	v := versions{Socket: c.Socket()}
	v.Client.Product, v.Client.Program, v.Client.Version = api.Product, "sbx", version
	v.Client.API, v.Client.Go = api.Version, runtime.Version()
	daemon, err := c.Version(ctx)
	if err != nil {
		v.DaemonError = err.Error()
	}
	v.Daemon = daemon
	if asJSON {
		return a.printJSON(v)
	}
	text := fmt.Sprintf("sbx, the client of %s: %s (API %d, %s)\n", v.Client.Product, v.Client.Version, v.Client.API, v.Client.Go)
	if daemon != nil {
		text += clean(fmt.Sprintf("daemon %s: %s (API %d) on %s", daemon.Product, daemon.Version, daemon.API, v.Socket)) + "\n"
	} else {
		text += clean("daemon: "+v.DaemonError) + "\n"
	}
	_, err = a.stdout.Write([]byte(text))
	return err
}
