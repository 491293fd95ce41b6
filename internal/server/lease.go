package server

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/job"
)

// Leases ends jobs whose foreground client has gone. A watched job must have a holder; when it has had none for the
// grace, it is lost. Nothing here is stored: after a restart the daemon watches the jobs anew, with a fresh grace.
type Leases struct {
	grace time.Duration
	lost  func(context.Context, job.ID) bool
	ctx   context.Context
	stop  context.CancelFunc

	mu      sync.Mutex
	stopped bool
	leases  map[job.ID]*lease
	ending  sync.WaitGroup // calls of lost; added to under mu while not stopped
}

// lease is one watched job, guarded by Leases.mu.
type lease struct {
	holders int
	changes int // tells a timer that fired late that it is not the present one
	timer   *time.Timer
}

// NewLeases makes the watch. lost ends a job without holders and reports whether that is settled; otherwise it is
// called again after another grace. It runs in a goroutine of its own, with a context that ends at Close.
func NewLeases(grace time.Duration, lost func(context.Context, job.ID) (settled bool)) *Leases {
	l := &Leases{grace: grace, lost: lost, leases: make(map[job.ID]*lease)}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Watch begins to ask for a holder, from now on. It does nothing for a job that is watched already.
func (l *Leases) Watch(id job.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped || l.leases[id] != nil {
		return
	}
	e := &lease{}
	l.leases[id] = e
	l.startLocked(id, e)
}

// Hold counts a holder of a job's lease until release is called, once or more.
func (l *Leases) Hold(id job.ID) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.leases[id]
	if e == nil {
		e = &lease{}
		l.leases[id] = e
	}
	e.holders++
	e.changes++
	if e.timer != nil {
		e.timer.Stop()
	}
	return sync.OnceFunc(func() { l.release(id, e) })
}

func (l *Leases) release(id job.ID, e *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.holders--
	if e.holders == 0 && l.leases[id] == e && !l.stopped {
		l.startLocked(id, e)
	}
}

// Forget ends the watch of a job that is done.
func (l *Leases) Forget(id job.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.leases[id]; e != nil {
		if e.timer != nil {
			e.timer.Stop()
		}
		e.changes++
		delete(l.leases, id)
	}
}

// Watched is the number of jobs watched, for tests and metrics.
func (l *Leases) Watched() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.leases)
}

// Close stops the watch, ends no more jobs, and waits for what was under way.
func (l *Leases) Close() {
	l.mu.Lock()
	l.stopped = true
	for _, e := range l.leases {
		if e.timer != nil {
			e.timer.Stop()
		}
	}
	l.mu.Unlock()
	l.stop()
	l.ending.Wait()
}

func (l *Leases) startLocked(id job.ID, e *lease) {
	e.changes++
	change := e.changes
	e.timer = time.AfterFunc(l.grace, func() { l.expire(id, e, change) })
}

func (l *Leases) expire(id job.ID, e *lease, change int) {
	l.mu.Lock()
	if l.stopped || e.changes != change {
		l.mu.Unlock()
		return
	}
	l.ending.Add(1)
	l.mu.Unlock()
	defer l.ending.Done()

	settled := l.lost(l.ctx, id)

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped || e.changes != change: // held again meanwhile: the holder sees the end and forgets
	case settled:
		delete(l.leases, id)
	default:
		l.startLocked(id, e)
	}
}
