package supervise

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// status is how the main process ended.
type status struct {
	at     int64
	code   int
	signal int
	core   bool
	usage  wire.Rusage
}

// reaper takes the status of every child, its own or adopted, in whatever order they end. It never waits for one pid: a
// process would have to ask for its turn, and the others be zombies meanwhile.
type reaper struct {
	main chan status   // cap 1
	none chan struct{} // closed when no child is left: nothing else lives in this pid namespace

	sweeping atomic.Bool  // everything is being killed
	killed   atomic.Int64 // children other than main that KILL ended while sweeping
}

func newReaper() *reaper {
	return &reaper{main: make(chan status, 1), none: make(chan struct{})}
}

// run returns when no child is left. It holds an OS thread.
func (r *reaper) run(mainPID int) {
	defer close(r.none)
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		pid, err := unix.Wait4(-1, &ws, unix.WALL, &ru)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return // ECHILD
		case pid == mainPID:
			r.main <- newStatus(ws, ru)
		case r.sweeping.Load() && ws.Signaled() && ws.Signal() == unix.SIGKILL:
			r.killed.Add(1)
		}
	}
}

func newStatus(ws unix.WaitStatus, ru unix.Rusage) status {
	s := status{at: wire.Boottime(), usage: wire.Rusage{
		UserNS: ru.Utime.Nano(), SysNS: ru.Stime.Nano(), MaxRSSKiB: ru.Maxrss,
	}}
	if ws.Signaled() {
		s.signal, s.core = int(ws.Signal()), ws.CoreDump()
	} else {
		s.code = ws.ExitStatus()
	}
	return s
}
