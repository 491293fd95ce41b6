package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"sandboxd/internal/admission"
	"sandboxd/internal/callerfs"
	"sandboxd/internal/config"
	"sandboxd/internal/engine"
	"sandboxd/internal/results"
	"sandboxd/internal/runner"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/scheduler"
	"sandboxd/internal/server"
	"sandboxd/internal/store"
)

// Times of the daemon.
const (
	closeTimeout = 30 * time.Second
	nodeName     = "local"
)

// daemon holds the open rooms.
type daemon struct {
	// Constant after newDaemon.
	cfg        config.Config
	configPath string
	log        zerolog.Logger
	fatal      chan error
	started    time.Time

	// Constant after open.
	db       *store.SQLite
	eng      *engine.Docker
	box      *sandbox.Sandbox
	images   *sandbox.Images
	pool     *sandbox.Pool
	paths    *callerfs.Opener
	logs     *results.Logs
	sched    *scheduler.Scheduler
	run      *runner.Runner
	server   *server.Server
	doors    *doors
	instance string
	epoch    int64

	engineUp atomic.Bool // the engine answers and the sandbox is open
	engine   engineState
	slots    slotTable
	draining atomic.Bool

	undo   []func(context.Context) error // in the order opened
	ctx    context.Context               // of the background work
	cancel context.CancelFunc
	work   sync.WaitGroup
}

func newDaemon(cfg config.Config, path string) *daemon {
	d := &daemon{cfg: cfg, configPath: path, fatal: make(chan error, 1), started: time.Now()}
	d.log = newLog(cfg.Log)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

func newLog(l config.Log) zerolog.Logger {
	level, err := zerolog.ParseLevel(l.Level)
	if err != nil {
		level = zerolog.InfoLevel // config has checked the word
	}
	zerolog.TimeFieldFormat = time.RFC3339Nano
	if l.JSON {
		return zerolog.New(os.Stderr).Level(level).With().Timestamp().Logger()
	}
	w := zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: "15:04:05.000", NoColor: os.Getenv("NO_COLOR") != "" || !isTerminal(os.Stderr)}
	return zerolog.New(w).Level(level).With().Timestamp().Logger()
}

func isTerminal(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
}

// step is one room to open; its undo runs at close, in reverse.
type step struct {
	name string
	open func(context.Context) (undo func(context.Context) error, err error)
}

// open opens the rooms from the bottom up. On an error the caller closes what was opened.
func (d *daemon) open(ctx context.Context) error {
	steps := []step{
		{"state directory", d.openStore},
		{"streams", d.openLogs},
		{"engine client", d.openEngine},
		{"sandbox", d.openSandbox},
		{"scheduler", d.openScheduler},
		{"background work", d.openBackground},
		{"socket", d.openServer},
	}
	for _, s := range steps {
		undo, err := s.open(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if undo != nil {
			d.undo = append(d.undo, undo)
		}
	}
	d.log.Info().Str("socket", d.cfg.Socket.Path).Str("instance", d.instance).Int64("epoch", d.epoch).
		Int("max_running", d.cfg.Capacity.MaxRunning).Bool("engine", d.engineUp.Load()).Msg("ready")
	return nil
}

// close closes in reverse; when hurry ends it waits no more.
func (d *daemon) close(hurry context.Context) error {
	d.draining.Store(true)
	ctx, cancel := context.WithTimeout(hurry, closeTimeout)
	defer cancel()
	var bad []error
	for i := len(d.undo) - 1; i >= 0; i-- {
		bad = append(bad, d.undo[i](ctx))
	}
	d.cancel()
	return errors.Join(bad...)
}

func (d *daemon) openStore(ctx context.Context) (func(context.Context) error, error) {
	d.db = store.New(store.Options{Dir: d.cfg.State.Dir, Node: nodeName, Log: d.log})
	if err := d.db.Open(ctx); err != nil {
		return nil, err
	}
	undo := func(context.Context) error { return d.db.Close() }
	var err error
	if d.instance, err = d.db.Instance(ctx); err != nil {
		return undo, errors.Join(err, undo(ctx))
	}
	if d.epoch, err = d.db.Boot(ctx); err != nil {
		return undo, errors.Join(err, undo(ctx))
	}
	return undo, nil
}

func (d *daemon) openLogs(context.Context) (func(context.Context) error, error) {
	d.logs = results.New(filepath.Join(d.cfg.State.Dir, "streams"))
	return func(context.Context) error { return d.logs.Close() }, nil
}

func (d *daemon) openEngine(context.Context) (func(context.Context) error, error) {
	d.eng = engine.New(engine.Options{Host: d.cfg.Engine.Host, CallTimeout: d.cfg.Engine.CallTimeout})
	if err := d.eng.Open(); err != nil {
		return nil, err
	}
	return func(context.Context) error { return d.eng.Close() }, nil
}

// openSandbox finds the binaries and opens the wall; where the engine is away that is done when it comes.
func (d *daemon) openSandbox(ctx context.Context) (func(context.Context) error, error) {
	initPath, sbxPath, err := binaries()
	if err != nil {
		return nil, err
	}
	d.slots.db = d.db
	d.box = sandbox.New(sandbox.Config{
		Instance: d.instance, Epoch: uint64(d.epoch), RunDir: d.cfg.State.RunDir, InitPath: initPath, SbxPath: sbxPath,
		UIDFirst: d.cfg.Slots.UIDFirst, UIDCount: d.cfg.Slots.UIDCount, UIDStride: d.cfg.Slots.UIDStride,
		Record: d.slots.record,
	}, d.eng)
	d.images = sandbox.NewImages(d.eng, d.box.CheckImage, d.cfg.Images.Pull)
	if err := d.slots.load(ctx); err != nil {
		return nil, err
	}
	undo := func(context.Context) error { return d.box.Close() }
	if err := d.tryEngine(ctx); err != nil {
		return undo, errors.Join(err, undo(ctx))
	}
	return undo, nil
}

// binaries are the two that go into containers, from beside the daemon's own.
func binaries() (initPath, sbxPath string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", "", fmt.Errorf("finding the daemon's own folder: %w", err)
	}
	dir := filepath.Dir(self)
	initPath, sbxPath = filepath.Join(dir, "sbx-init"), filepath.Join(dir, "sbx")
	for _, p := range []string{initPath, sbxPath} {
		if _, err := os.Stat(p); err != nil {
			return "", "", fmt.Errorf("%s must stand beside sandboxd: %w; build all three with 'make build'", filepath.Base(p), err)
		}
	}
	return initPath, sbxPath, nil
}

func (d *daemon) openScheduler(ctx context.Context) (func(context.Context) error, error) {
	d.paths = callerfs.New(callerfs.Rules{Roots: d.cfg.Workspace.Roots, Forbidden: d.forbidden()})
	checker := admission.New(admission.Rules{
		Profiles: d.cfg.Profiles, Limits: &d.cfg.Ceiling,
		MilliCPUs: d.cfg.Capacity.MilliCPUs, Memory: d.cfg.Capacity.Memory, MinFreeDisk: d.cfg.Capacity.MinFreeDisk,
		MaxQueued: d.cfg.Capacity.MaxQueued, MaxQueuedPer: d.cfg.Capacity.MaxQueuedPerUser,
	}, d.images, hostPaths{d.paths}, freeDisk(d.cfg.State.Dir))
	d.sched = scheduler.New(scheduler.Options{
		Ledger: d.db, Trees: d.db, Node: d.db, Checker: checker, NodeName: nodeName, EngineUp: d.engineUp.Load, Log: d.log,
		Capacity: scheduler.Capacity{MaxRunning: d.cfg.Capacity.MaxRunning, MaxRunningPerUID: d.cfg.Capacity.MaxRunningPerUser,
			MilliCPUs: d.cfg.Capacity.MilliCPUs, Memory: d.cfg.Capacity.Memory},
	})
	d.pool = sandbox.NewPool(d.box, d.cfg.Engine.WarmSlots, d.cfg.Engine.WarmFor, d.hasSpare, func(err error) {
		d.log.Warn().Err(err).Msg("a warm slot could not be made or removed")
	})
	d.doors = newDoors(d.ctx, d.log)
	d.run = runner.New(runner.Options{
		Family: family{d.sched}, Doors: d.doors,
		Sandbox: d.box, Images: d.images, Pool: d.pool, Logs: d.logs, Ledger: d.sched, Paths: hostPaths{d.paths}, Slots: &d.slots, EngineUp: d.engineUp.Load,
		CancelGrace: d.cfg.Jobs.CancelGrace, Log: d.log,
	})
	if err := d.sched.Open(ctx, d.run, d.epoch); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return errors.Join(d.sched.Close(ctx), d.pool.Close(ctx), d.paths.Wait(ctx))
	}, nil
}

// hasSpare reports whether a warm slot would take nothing from a job: a place is free, and nobody waits for it.
func (d *daemon) hasSpare() bool {
	return d.engineUp.Load() && !d.draining.Load() && d.sched.Queued() == 0 && d.sched.Running() < d.cfg.Capacity.MaxRunning
}

// forbidden are the folders that no job may see: the engine's, ours and the config's.
func (d *daemon) forbidden() []string {
	out := []string{d.cfg.State.Dir, d.cfg.State.RunDir, filepath.Dir(d.cfg.Socket.Path), "/var/run/docker.sock"}
	if root := d.box.Info().RootDir; root != "" {
		out = append(out, root)
	} else {
		out = append(out, "/var/lib/docker")
	}
	if at, ok := strings.CutPrefix(d.eng.Host(), "unix://"); ok {
		out = append(out, at)
	}
	if d.configPath != "" {
		if abs, err := filepath.Abs(d.configPath); err == nil {
			out = append(out, filepath.Dir(abs))
		}
	}
	return out
}
