package supervise

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Config is what init is told on its command line; nothing of it is secret.
type Config struct {
	Socket       string        // the slot's socket
	Slot         string        // the slot's name; empty: init takes the one it is told
	Self         string        // the program to run as the stub
	FirstConnect time.Duration // how long to try for the first connection
	OrphanGrace  time.Duration // how long past the deadline to wait for a daemon that is gone
}

// Defaults are those of a real container.
func Defaults() Config {
	return Config{
		Socket:       "/sbx/slot/init.sock",
		Self:         "/proc/self/exe",
		FirstConnect: time.Minute,
		OrphanGrace:  24 * time.Hour,
	}
}

// ErrOrphaned means that no daemon came back within the grace.
var ErrOrphaned = errors.New("orphaned: the daemon did not come back")

// errNeverReached means that there never was a daemon.
var errNeverReached = errors.New("the daemon was never reached")

// drainTime is how long a process that cannot be killed, or its pipe, may delay the result.
const drainTime = int64(2e9)

// stage of the job, as the supervisor sees it.
type stage uint8

const (
	stageFilled   stage = iota // the stub waits
	stageStarting              // the stub has its order
	stageRunning               // the command runs
	stageEnding                // it has ended; what is left is killed and read
	stageReported              // exited is in the ring
)

// supervisor is init's one loop. All fields belong to the goroutine of Run.
type supervisor struct {
	cfg     Config
	ring    *ring
	stdin   *stdin
	link    *link
	cmd     *command
	reaper  *reaper
	outputs *outputs
	alarm   *alarm
	plan    plan

	stage     stage
	times     wire.Start      // of the job; argv and environment are not kept
	began     int64           // when the command started
	result    wire.Exited     // what is known so far
	ended     *status         // the main process's
	none      <-chan struct{} // closed when nothing else lives; nil once seen
	read      <-chan struct{} // closed when the outputs are read to their end; nil once seen, or without outputs
	sweeping  bool
	drainAt   int64
	connected bool
	orphanAt  int64
	latest    int64         // the deadline the job had
	over      chan struct{} // closed at the end
	wait      sync.WaitGroup
}

// Run is the life of init. It returns nil when the daemon has said end; the process then exits, and with it all that
// may be left in the container. It runs only as PID 1.
func Run(ctx context.Context, cfg Config) error {
	if err := CheckInit(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &supervisor{
		cfg: cfg, ring: newRing(ringSize), reaper: newReaper(), plan: newPlan(),
		connected: true, orphanAt: never, drainAt: never, over: make(chan struct{}),
	}
	s.stdin = newStdin(s.ring.signal)
	s.link = newLink(cfg.Socket, s.ring, s.stdin)
	defer s.waitAWhile()
	defer cancel()
	defer close(s.over)
	defer s.ring.close()
	conn, err := s.fill(ctx)
	if err != nil {
		return err
	}
	defer s.alarm.close()
	s.wait.Go(func() { s.link.run(ctx, conn) })
	return s.loop()
}

// fill connects, forks the stub and says ready.
func (s *supervisor) fill(ctx context.Context) (*wire.Conn, error) {
	limited, cancel := context.WithTimeoutCause(ctx, s.cfg.FirstConnect, errNeverReached)
	defer cancel()
	conn, err := s.link.first(limited, s.cfg.Slot)
	if err != nil {
		return nil, err
	}
	if s.alarm, err = newAlarm(); err != nil {
		return nil, err
	}
	if s.cmd, err = forkStub(s.cfg.Self); err != nil {
		return nil, err
	}
	// Not waited for: a process that cannot be killed would hold it for ever. It ends with init.
	go s.reaper.run(s.cmd.pid)
	s.none = s.reaper.none
	return conn, s.ring.control(s.cmd.ready, wire.Boottime())
}

// loop takes one event after the other until the job is over.
func (s *supervisor) loop() error {
	for {
		now := wire.Boottime()
		if err := s.keepTime(now); err != nil {
			return err
		}
		if err := s.report(now); err != nil {
			return err
		}
		select {
		case m := <-s.link.orders:
			if _, over := m.(wire.End); over {
				s.sweep()
				return nil
			}
			s.obey(m)
		case s.connected = <-s.link.changes:
			s.watchOrphan(wire.Boottime())
		case o := <-s.cmd.outcome:
			if err := s.startedOrNot(o); err != nil {
				return err
			}
		case st := <-s.reaper.main:
			s.ended = &st
			s.mainEnded()
		case <-s.none:
			s.none = nil
			s.drain()
		case <-s.read:
			s.read = nil
		case <-s.alarm.C:
		}
	}
}

// waitAWhile waits for what was started, but not for what an unkillable process holds.
func (s *supervisor) waitAWhile() {
	done := make(chan struct{})
	go func() { s.wait.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

// keepTime does what is due and sets the alarm for what comes next.
func (s *supervisor) keepTime(now int64) error {
	for act := s.plan.due(now); act != actNone && s.ended == nil; act = s.plan.due(now) {
		if act == actTerm {
			s.result.TermSent = true
			terminate(s.cmd.pid)
			continue
		}
		s.result.KillSent = true
		s.sweep()
	}
	if now >= s.drainAt {
		s.drain()
	}
	if now >= s.orphanAt {
		s.sweep()
		return ErrOrphaned
	}
	next := min(s.drainAt, s.orphanAt)
	if s.ended == nil {
		next = min(next, s.plan.wake())
	}
	return s.alarm.set(next)
}

func (s *supervisor) obey(m wire.Message) {
	now := wire.Boottime()
	switch m := m.(type) {
	case wire.Start:
		s.start(now, m)
	case wire.Signal:
		if s.stage == stageRunning {
			signalGroup(s.cmd.pid, unix.Signal(m.Signo))
		}
	case wire.Cancel:
		if s.stage == stageFilled {
			m.GraceMS = 0 // only the stub waits
		}
		if s.ended == nil { // else it brought about nothing
			s.plan.cancelled(now, m)
		}
	case wire.Lease:
		s.plan.renewed(now, m)
	}
}
