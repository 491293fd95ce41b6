// The runtime would keep files of the cgroup open in init and stub to follow its cpu limit; the start gate wants none.
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command sbx-init is PID 1 of every job container. It is mounted read-only, gets its job as a message over the slot's
// socket, and runs, reaps and relays it; internal/supervise says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"sandboxd/internal/supervise"
	"sandboxd/internal/wire"
)

// Exit codes. The daemon reads the connection; these are for whoever looks at the container.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitOrphaned = 4
)

// The stub becomes the command by exec from the main thread, so that what was set on its pid alone (affinity) stays.
// Only here is the main goroutine surely on that thread.
func init() { runtime.LockOSThread() }

func main() {
	if err := supervise.Conceal(); err != nil {
		fmt.Fprintln(os.Stderr, "sbx-init:", err)
		os.Exit(exitFailed)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	cfg, version, rest, err := parse(args)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "sbx-init:", err)
		return exitUsage
	case version:
		fmt.Fprintf(stdout, "sbx-init, protocol %d\n", wire.Version)
		return exitDone
	case len(rest) == 0:
		return runInit(cfg, stderr)
	case rest[0] == "stub" && len(rest) == 1:
		return report(supervise.RunStub(), io.Discard) // its stderr is the job's
	}
	fmt.Fprintf(stderr, "sbx-init: unknown subcommand %q; without one it is the init of a job container\n", rest[0])
	return exitUsage
}

func parse(args []string) (cfg supervise.Config, version bool, rest []string, err error) {
	cfg = supervise.Defaults()
	f := flag.NewFlagSet("sbx-init", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&version, "version", false, "print the version")
	f.StringVar(&cfg.Socket, "socket", cfg.Socket, "the slot's `socket`")
	f.StringVar(&cfg.Slot, "slot", cfg.Slot, "the slot's `name`")
	f.DurationVar(&cfg.FirstConnect, "first-connect", cfg.FirstConnect, "how long to try for the first connection")
	f.DurationVar(&cfg.OrphanGrace, "orphan-grace", cfg.OrphanGrace, "how long past the deadline to wait for a daemon")
	err = f.Parse(args)
	return cfg, version, f.Args(), err
}

func runInit(cfg supervise.Config, stderr io.Writer) int {
	if err := supervise.CheckInit(); err != nil {
		fmt.Fprintln(stderr, "sbx-init:", err)
		return exitUsage
	}
	runtime.UnlockOSThread()
	supervise.IgnoreSignals()
	supervise.Shrink()
	return report(supervise.Run(context.Background(), cfg), stderr)
}

func report(err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, supervise.ErrOrphaned):
		fmt.Fprintln(stderr, "sbx-init:", err)
		return exitOrphaned
	}
	fmt.Fprintln(stderr, "sbx-init:", err)
	return exitFailed
}
