package supervise

import (
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// The steps of a job, in the order in which they come. All run in the supervisor's goroutine.

// start hands the order to the stub.
func (s *supervisor) start(now int64, m wire.Start) {
	if s.stage != stageFilled {
		return // the stub has died, and the report says so
	}
	s.stage = stageStarting
	s.times = wire.Start{TimeoutMS: m.TimeoutMS, FinishMS: m.FinishMS, GraceMS: m.GraceMS}
	s.plan.started(now, s.times) // and again when it has started; a stub that hangs has a deadline too
	s.latest = s.plan.deadline
	s.giveStdin(m.Stdin)
	s.wait.Go(func() { s.cmd.launch(m) })
}

func (s *supervisor) giveStdin(wanted bool) {
	if !wanted || unix.SetNonblock(s.cmd.stdin, true) != nil {
		closeAll(s.cmd.stdin)
		s.stdin.shut()
		return
	}
	pipe := os.NewFile(uintptr(s.cmd.stdin), "stdin")
	s.wait.Go(func() { s.stdin.pump(pipe) })
}

// startedOrNot takes the outcome of the start.
func (s *supervisor) startedOrNot(o outcome) error {
	s.stage = stageRunning
	if o.failed != nil {
		s.result.StartError = o.failed
		s.sweep() // the stub ends by itself, unless it is what failed
	} else if err := s.started(o.at); err != nil {
		return err
	}
	if s.ended != nil { // it was quick
		s.mainEnded()
	}
	return nil
}

func (s *supervisor) started(at int64) error {
	s.began = at
	s.plan.started(at, s.times)
	s.latest = s.plan.deadline
	if err := s.ring.control(wire.Started{PID: s.cmd.pid, AtNS: at}, at); err != nil {
		return err
	}
	// Only now: no output may stand before started.
	outputs, err := newOutputs(s.ring, s.cmd.stdout, s.cmd.stderr)
	if err != nil {
		return err
	}
	read := make(chan struct{})
	s.outputs, s.read = outputs, read
	s.wait.Go(func() { outputs.run(); close(read) })
	if s.none == nil {
		s.drain()
	}
	return nil
}

// mainEnded kills what is left once the main process has ended and it is known whether it had started.
func (s *supervisor) mainEnded() {
	switch {
	case s.stage == stageStarting:
		return // the outcome comes, and calls again
	case s.stage == stageFilled:
		s.result.StartError = startError(wire.OpStub, "", nil, "the stub died before the command started")
	case s.result.StartError == nil:
		s.result.Code, s.result.Signal, s.result.CoreDumped = s.ended.code, s.ended.signal, s.ended.core
		s.result.WallNS, s.result.Rusage = max(0, s.ended.at-s.began), s.ended.usage
	}
	s.stage = stageEnding
	s.result.Cause = s.plan.cause
	s.drainAt = s.ended.at + drainTime
	s.stdin.shut()
	s.sweep()
}

func (s *supervisor) sweep() {
	if s.sweeping {
		return
	}
	s.sweeping = true
	s.reaper.sweeping.Store(true)
	s.wait.Go(func() { sweep(s.over) })
}

// drain lets the outputs end although somebody may still hold a pipe.
func (s *supervisor) drain() {
	s.drainAt = never
	if s.outputs != nil {
		s.outputs.drain()
	}
}

// report puts exited in the ring once the outputs are read and nothing else lives, or may delay it no longer.
func (s *supervisor) report(now int64) error {
	if s.stage != stageEnding || s.read != nil {
		return nil
	}
	if s.none != nil && now < s.ended.at+drainTime {
		return nil
	}
	s.stage = stageReported
	s.result.LeftKilled = int(s.reaper.killed.Load())
	if s.outputs != nil {
		s.result.Stdout, s.result.Stderr = s.outputs.streams[0].sum, s.outputs.streams[1].sum
		s.result.CutShort = s.outputs.cutShort
	}
	return s.ring.control(s.result, now)
}

// watchOrphan counts the time without a daemon, from the loss of the connection or the job's deadline, whichever is later.
func (s *supervisor) watchOrphan(now int64) {
	s.orphanAt = never
	if !s.connected {
		s.orphanAt = max(now, s.latest) + int64(s.cfg.OrphanGrace)
	}
}
