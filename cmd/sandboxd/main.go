// Command sandboxd is the daemon: it wires the rooms together, opens them, runs, and closes them in reverse.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"sandboxd/internal/callerfs"
	"sandboxd/internal/config"
	"sandboxd/internal/job"
)

// version is set by the linker.
var version = "dev"

// defaultConfig is read when it exists and no other file is named.
const defaultConfig = "/etc/sandboxd/config.toml"

func main() {
	if len(os.Args) == 2 && os.Args[1] == callerfs.HelperArg {
		os.Exit(callerfs.HelperMain())
	}
	if err := command().Run(context.Background(), os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "sandboxd:", err)
		var refused *job.Error
		if errors.As(err, &refused) && refused.Hint != "" {
			fmt.Fprintln(os.Stderr, "sandboxd:", refused.Hint)
		}
		var usage usageError
		if errors.As(err, &usage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

type usageError struct{ error }

func command() *cli.Command {
	file := &cli.StringFlag{Name: "config", Aliases: []string{"c"}, Sources: cli.EnvVars("SANDBOXD_CONFIG"),
		Usage: "`FILE` with the configuration (default " + defaultConfig + " where it exists)"}
	wrong := func(_ context.Context, _ *cli.Command, err error, _ bool) error {
		return usageError{fmt.Errorf("%w; see 'sandboxd --help'", err)}
	}
	return &cli.Command{
		Name:  "sandboxd",
		Usage: "runs each job in a hardened container of its own",
		Description: "Runs in the foreground and logs to standard error. SIGTERM or SIGINT ends it: running jobs go on and\n" +
			"the next start takes them over; a second signal does not wait.",
		Version:               version,
		Flags:                 []cli.Flag{file},
		OnUsageError:          wrong,
		ExitErrHandler:        func(context.Context, *cli.Command, error) {},
		Action:                serve,
		EnableShellCompletion: true,
		Commands: []*cli.Command{{
			Name: "config", Usage: "looks at the configuration",
			Commands: []*cli.Command{{
				Name: "validate", Usage: "reads the configuration and says what is wrong with it",
				Flags: []cli.Flag{file}, OnUsageError: wrong, Action: validate,
			}, {
				Name: "show", Usage: "prints every effective value; profiles are shown by 'sbx profiles NAME'",
				Flags:        []cli.Flag{file, &cli.BoolFlag{Name: "origin", Usage: "tell where each value comes from"}, &cli.BoolFlag{Name: "json", Usage: "one JSON array"}},
				OnUsageError: wrong, Action: show,
			}},
		}},
	}
}

func configPath(c *cli.Command) string {
	path := c.String("config")
	if path == "" {
		if _, err := os.Stat(defaultConfig); err == nil {
			path = defaultConfig
		}
	}
	return path
}

func load(c *cli.Command) (config.Config, string, error) {
	path := configPath(c)
	host, err := hostSize()
	if err != nil {
		return config.Config{}, path, err
	}
	cfg, err := config.Load(path, host)
	return cfg, path, err
}

func hostSize() (config.Host, error) {
	var si syscall.Sysinfo_t
	if err := syscall.Sysinfo(&si); err != nil {
		return config.Host{}, fmt.Errorf("reading the host's memory: %w", err)
	}
	return config.Host{Cores: runtime.NumCPU(), Memory: int64(si.Totalram) * int64(si.Unit)}, nil
}

func validate(_ context.Context, c *cli.Command) error {
	_, path, err := load(c)
	if err != nil {
		return err
	}
	if path == "" {
		path = "the built-in defaults"
	}
	fmt.Println(path + ": sound")
	return nil
}

func show(_ context.Context, c *cli.Command) error {
	host, err := hostSize()
	if err != nil {
		return err
	}
	cfg, text, err := config.LoadText(configPath(c), host)
	if err != nil {
		return err
	}
	settings := config.Settings(text, cfg)
	if c.Bool("json") {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(settings)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range settings {
		if c.Bool("origin") {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, s.Value, s.Origin)
		} else {
			fmt.Fprintf(w, "%s\t%s\n", s.Key, s.Value)
		}
	}
	return w.Flush()
}

func serve(ctx context.Context, c *cli.Command) error {
	if c.Args().Present() {
		return usageError{fmt.Errorf("unknown argument %q; see 'sandboxd --help'", c.Args().First())}
	}
	cfg, path, err := load(c)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("the daemon needs root: it makes mounts and cgroups; run it with sudo")
	}
	d := newDaemon(cfg, path)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	if err := d.open(ctx); err != nil {
		return errors.Join(err, d.close(ctx))
	}
	select {
	case s := <-signals:
		d.log.Info().Str("signal", s.String()).Msg("stopping; running jobs go on and the next start takes them over")
	case err := <-d.fatal:
		d.log.Error().Err(err).Msg("stopping after a fault that cannot be mended")
		return errors.Join(err, d.close(ctx))
	}
	hurry, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-signals:
			cancel(errors.New("second signal"))
		case <-hurry.Done():
		}
	}()
	return d.close(hurry)
}
