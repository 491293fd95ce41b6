package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/engine"
	"sandboxd/internal/job"
)

// Sandbox fills, adopts and removes slots. Safe for concurrent use after Open.
type Sandbox struct {
	cfg Config
	eng Engine

	// Constant after Open.
	info     engine.Info
	h        hierarchy
	parent   string // cgroup parent of every container
	filter   string // seccomp JSON
	maskToo  []string
	hostNS   map[string]string
	uids     *uids
	cores    *cores
	appArmor bool

	images imageVerdicts

	mu     sync.Mutex
	opened bool
	closed bool
	live   map[string]bool // slots being filled or alive in this daemon; guarded by mu
}

// New sets defaults and starts nothing.
func New(cfg Config, eng Engine) *Sandbox {
	cfg.UIDFirst = cmp.Or(cfg.UIDFirst, DefaultUIDFirst)
	cfg.UIDCount = cmp.Or(cfg.UIDCount, DefaultUIDCount)
	cfg.UIDStride = cmp.Or(cfg.UIDStride, DefaultUIDStride)
	cfg.Epoch = max(cfg.Epoch, 1)
	cfg.StartTimeout = cmp.Or(cfg.StartTimeout, defaultStartTimeout)
	cfg.CleanupTimeout = cmp.Or(cfg.CleanupTimeout, defaultCleanupTimeout)
	if cfg.PasswdFiles == nil {
		cfg.PasswdFiles = []string{"/etc/passwd", "/etc/group", "/etc/subuid", "/etc/subgid"}
	}
	if cfg.Record == nil {
		cfg.Record = func(context.Context, SlotRecord) error { return nil }
	}
	return &Sandbox{cfg: cfg, eng: eng, live: map[string]bool{}}
}

// Open checks the host (uid range, cgroups, engine), makes the run directory and installs the binaries. known are the
// records an earlier daemon left: their uids stay taken until RemoveByRecord or Slot.Remove has freed them. It may be
// called again after a failure; after a success it does nothing.
func (s *Sandbox) Open(ctx context.Context, known []SlotRecord) error {
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if opened {
		return nil
	}
	if len(s.cfg.Instance) < 8 || strings.ContainsFunc(s.cfg.Instance, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return job.Errorf(job.CodeInternal, "instance", "an instance id of at least 8 printable characters is needed")
	}
	if err := checkRange(s.cfg); err != nil {
		return err
	}
	info, err := s.eng.Info(ctx)
	if err != nil {
		return fmt.Errorf("asking the engine about itself: %w", err)
	}
	if err := s.openEngine(info); err != nil {
		return err
	}
	if err := s.openHost(); err != nil {
		return err
	}
	if err := s.openRunDir(); err != nil {
		return err
	}
	if err := s.openUIDs(known); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = true
	return nil
}

// openEngine refuses engines that change what a uid means, and takes what Render must know.
func (s *Sandbox) openEngine(info engine.Info) error {
	for _, o := range info.SecurityOpts {
		for _, no := range []string{"userns", "rootless"} {
			if o == "name="+no || strings.HasPrefix(o, "name="+no+",") {
				return job.Errorf(job.CodeEngine, "", "the engine runs with %s, which gives uids in containers another meaning: %v", no, ErrNotSupported).
					WithHint("run a Docker engine as root without userns-remap")
			}
		}
	}
	if info.OSType != "linux" || !slices.Contains(info.Runtimes, "runc") {
		return job.Errorf(job.CodeEngine, "", "the engine (%s, runtimes %v) has no runc for Linux containers", info.OSType, info.Runtimes)
	}
	filter, err := Filter(runtime.GOARCH)
	if err != nil {
		return err
	}
	short := s.cfg.Instance[:8]
	s.info, s.filter = info, filter
	s.appArmor = slices.ContainsFunc(info.SecurityOpts, func(o string) bool { return o == "name=apparmor" || strings.HasPrefix(o, "name=apparmor,") })
	s.parent = s.cfg.CgroupParent
	if s.parent == "" && info.CgroupDriver == "systemd" {
		s.parent = "sandboxd-" + short + ".slice"
	}
	s.parent = cmp.Or(s.parent, "/sandboxd-"+short)
	if (info.CgroupDriver == "systemd") != strings.HasSuffix(s.parent, ".slice") {
		return job.Errorf(job.CodeInvalid, "cgroup_parent", "%q does not fit the engine's cgroup driver %s", s.parent, info.CgroupDriver)
	}
	return nil
}

// openHost reads what of this host never changes.
func (s *Sandbox) openHost() error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("the host's mounts: %w", err)
	}
	mounts, err := parseMountinfo(string(text))
	if err != nil {
		return err
	}
	if s.h, err = readHierarchy(s.info.CgroupVersion, mounts); err != nil {
		return err
	}
	self := process{pid: os.Getpid()}
	if s.hostNS, err = self.namespaces(); err != nil {
		return err
	}
	if s.cores, err = newCores(); err != nil {
		return err
	}
	s.maskToo, err = filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle")
	return err
}

// openUIDs takes out of circulation what records hold, and what any process of the host runs under.
func (s *Sandbox) openUIDs(known []SlotRecord) error {
	s.uids = newUIDs(s.cfg.UIDFirst, s.cfg.UIDCount, s.cfg.UIDStride)
	for _, r := range known {
		s.uids.hold(r.UID, r.Slot)
	}
	running, err := runningUIDs()
	for _, id := range running {
		s.uids.hold(id, nobodys)
	}
	return err
}

// Close refuses further fills. Slots live on: the next daemon adopts them.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.opened && len(s.live) == 0 {
		s.removeParents()
	}
	return nil
}

// Info is what the engine said at Open; zero before.
func (s *Sandbox) Info() engine.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		return engine.Info{}
	}
	return s.info
}

// enter claims the name of a slot for this daemon.
func (s *Sandbox) enter(slot string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || !s.opened:
		return ErrClosed
	case s.live[slot]:
		return fmt.Errorf("slot %s is in use already", slot)
	}
	s.live[slot] = true
	return nil
}

func (s *Sandbox) leave(slot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, slot)
}

func (s *Sandbox) isLive(slot string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[slot]
}

func (s *Sandbox) record(ctx context.Context, r SlotRecord) error {
	if err := s.cfg.Record(ctx, r); err != nil {
		return fmt.Errorf("recording slot %s as %s: %w", r.Slot, r.State, err)
	}
	return nil
}

// Holds reports whether this daemon fills or uses the slot.
func (s *Sandbox) Holds(slot string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[slot]
}

// hostMilliCPUs is what the engine would give one container at most.
func hostMilliCPUs() int64 { return int64(runtime.NumCPU()) * 1000 }

// clock measures the steps of a fill.
type clock struct {
	last  time.Time
	steps []Step
}

func newClock() *clock { return &clock{last: time.Now()} }

func (c *clock) step(name string) {
	now := time.Now()
	c.steps = append(c.steps, Step{name, float64(now.Sub(c.last).Microseconds()) / 1000})
	c.last = now
}
