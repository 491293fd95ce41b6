package scheduler

import (
	"context"
	"errors"
	"slices"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// A job that is blocked on its own children lends its place when somebody needs it, and only while it is frozen, so that
// nothing of it can claim to wait and burn cpu. It thaws, and the wait returns, once it has a place again. Its memory
// stays counted: frozen processes keep it.

// minRun is how long a job that got its place back keeps it, so that it sees the answer it waited for.
const minRun = 500 * time.Millisecond

// freezeTimeout bounds the freezing and thawing of one job.
const freezeTimeout = 5 * time.Second

// errNobodyCanRun denies a wait: only waiting jobs hold places, and nothing that is queued fits beside their memory.
var errNobodyCanRun = job.Errorf(job.CodeCapacity, "", "every running job waits, and no queued job fits beside them").
	WithHint("let fewer jobs wait at once, or ask for less memory")

// errWouldBlock denies a wait where lending is the only way on and this job cannot be frozen.
var errWouldBlock = job.Errorf(job.CodeWouldBlock, "", "the wait would block for ever: its place is needed and the job cannot be frozen").
	WithHint("let the operator raise capacity.max_running")

// lending is the waiting side of a running job. Guarded by the scheduler's mutex.
type lending struct {
	waits    []*wait // requests that are blocked on children, oldest first
	lent     bool    // the place is somebody else's; the job is frozen
	stiff    bool    // it could not be frozen
	moving   bool    // being frozen or thawed
	ending   bool    // about to be finished: it lends nothing any more
	back     time.Time
	wantBack []chan struct{} // closed when the place is its own again
}

type wait struct {
	deny   context.CancelCauseFunc
	denied bool
}

// Wait is called before a job's request blocks on one of its descendants. The wait may be denied later: then the context
// returned ends with the reason. release is called before the request is answered; it returns once the job has its
// place.
func (s *Scheduler) Wait(ctx context.Context, c job.Caller, _ job.ID) (blocked context.Context, release func()) {
	blocked, deny := context.WithCancelCause(ctx)
	w := &wait{deny: deny}
	s.mu.Lock()
	e := s.running[c.Job]
	if e != nil {
		e.waits = append(e.waits, w)
	}
	s.mu.Unlock()
	if e == nil {
		return blocked, func() { deny(nil) }
	}
	s.Wake()
	return blocked, func() { s.endWait(ctx, e, w); deny(nil) }
}

func (s *Scheduler) endWait(ctx context.Context, e *execution, w *wait) {
	s.mu.Lock()
	for i, other := range e.waits {
		if other == w {
			e.waits = append(e.waits[:i:i], e.waits[i+1:]...)
			break
		}
	}
	if !e.lent && !e.moving {
		s.mu.Unlock()
		return
	}
	ch := make(chan struct{})
	e.wantBack = append(e.wantBack, ch)
	s.mu.Unlock()
	s.Wake()
	select {
	case <-ch:
	case <-ctx.Done():
	case <-s.stop.Done():
	}
}

// giveBack thaws one job that waits for its place and may have it; it reports whether it did.
func (s *Scheduler) giveBack() bool {
	s.mu.Lock()
	var id job.ID
	if l := s.loadLocked(); l.running < s.opt.Capacity.MaxRunning {
		for other, e := range s.running {
			if e.lent && !e.moving && len(e.wantBack) > 0 && (id == "" || other < id) {
				id = other
			}
		}
	}
	if id == "" {
		s.mu.Unlock()
		return false
	}
	s.running[id].moving = true
	s.mu.Unlock()
	s.takeBack(id)
	return true
}

// takeBack makes a lent place the job's own again: thawed first, so that nothing of it is ever stopped without reason.
func (s *Scheduler) takeBack(id job.ID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.stop), freezeTimeout)
	defer cancel()
	if err := s.runner.Thaw(ctx, id); err != nil {
		s.opt.Log.Error().Err(err).Str("job", string(id)).Msg("a waiting job could not be thawed; it is tried again")
		s.mu.Lock()
		defer s.mu.Unlock()
		if e := s.running[id]; e != nil {
			e.moving = false
		}
		return
	}
	s.mu.Lock()
	e := s.running[id]
	s.mu.Unlock()
	if e != nil {
		s.shift(ctx, e, job.Waiting, job.Running)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e == nil {
		return
	}
	e.lent, e.moving, e.back = false, false, time.Now()
	for _, ch := range e.wantBack {
		close(ch)
	}
	e.wantBack = nil
}

// lend freezes one waiting job for the sake of the queue and takes its place; it reports whether anything changed.
func (s *Scheduler) lend() bool {
	s.mu.Lock()
	if s.queue.len() == 0 && !s.wantedBackLocked() || s.stop.Err() != nil {
		s.mu.Unlock()
		return false
	}
	id, e := s.lenderLocked()
	if e == nil {
		changed := s.denyLocked()
		s.mu.Unlock()
		return changed
	}
	e.moving = true
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(s.stop, freezeTimeout)
	defer cancel()
	err := s.runner.Freeze(ctx, id)
	if err == nil {
		s.shift(ctx, e, job.Running, job.Waiting)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.moving = false
	e.lent, e.stiff = err == nil, job.CodeOf(err) == job.CodeWouldBlock && err != nil
	if err != nil {
		e.back = time.Now()             // another look in a while
		for _, ch := range e.wantBack { // its wait ended meanwhile, and it never lost its place
			close(ch)
		}
		e.wantBack = nil
		s.opt.Log.Warn().Err(err).Str("job", string(id)).Msg("a waiting job cannot be frozen; it keeps its place")
	}
	return true
}

// lenderLocked picks the job that has waited longest of those whose place would let somebody go on: a queued job, or a
// waiting one that wants its place back. Where no single place would do but all together would, the first is lent.
func (s *Scheduler) lenderLocked() (job.ID, *execution) {
	var ready []job.ID
	for id, e := range s.running {
		if len(e.waits) > 0 && !e.lent && !e.stiff && !e.ending && !e.moving && e.cancel != nil && time.Since(e.back) > minRun {
			ready = append(ready, id)
		}
	}
	slices.Sort(ready)
	for i := range ready {
		if s.helpsLocked(ready[i : i+1]) {
			return ready[i], s.running[ready[i]]
		}
	}
	if len(ready) > 1 && s.helpsLocked(ready) {
		return ready[0], s.running[ready[0]]
	}
	return "", nil
}

// helpsLocked reports whether somebody could go on if these jobs lent their places.
func (s *Scheduler) helpsLocked(lenders []job.ID) bool {
	l := newLoad()
	for id, e := range s.running {
		s.addLocked(&l, e, e.lent || slices.Contains(lenders, id))
	}
	if s.wantedBackLocked() && l.running < s.opt.Capacity.MaxRunning {
		return true
	}
	next, _ := s.queue.choose(l, s.opt.Capacity)
	return next != nil
}

// wantedBackLocked reports whether a job whose wait is over has no place to go on in.
func (s *Scheduler) wantedBackLocked() bool {
	for _, e := range s.running {
		if e.lent && len(e.wantBack) > 0 {
			return true
		}
	}
	return false
}

// denyLocked ends the youngest wait where nothing else can go on.
func (s *Scheduler) denyLocked() bool {
	var youngest *execution
	var id job.ID
	cause := errNobodyCanRun
	for other, e := range s.running {
		// Somebody still runs, or is about to: time will tell.
		if len(e.waits) == 0 || e.moving || e.ending || len(e.wantBack) > 0 || !e.lent && time.Since(e.back) <= minRun {
			return false
		}
		if e.stiff {
			cause = errWouldBlock
		}
		if id == "" || other > id {
			id, youngest = other, e
		}
	}
	if youngest == nil {
		return false
	}
	w := youngest.waits[len(youngest.waits)-1]
	if w.denied {
		return false // its request is on its way out
	}
	w.denied = true
	w.deny(cause)
	s.opt.Log.Warn().Str("job", string(id)).Msg("a wait was denied: nothing else could go on")
	return false
}

// recall makes sure that a job which is about to end is not frozen and stands as running in the ledger.
func (s *Scheduler) recall(id job.ID) {
	for tries := 0; tries < maxRecalls; tries++ {
		s.mu.Lock()
		e := s.running[id]
		if e != nil {
			e.ending = true
		}
		if e == nil || !e.lent && !e.moving {
			s.mu.Unlock()
			return
		}
		busy := e.moving
		e.moving = true // stays so where it was
		s.mu.Unlock()
		if !busy {
			s.takeBack(id)
			continue // it may have failed
		}
		time.Sleep(time.Millisecond) // the loop is freezing or thawing it: a matter of milliseconds
	}
}

// maxRecalls bounds the waiting for a freeze or thaw under way, in looks a millisecond apart.
const maxRecalls = 10_000

// shift moves a job between running and waiting in the ledger. It is for those who look; nothing is decided by it.
func (s *Scheduler) shift(ctx context.Context, e *execution, from, to job.State) {
	err := s.opt.Ledger.Move(ctx, store.Move{ID: e.item.ID, Attempt: e.item.Attempt, From: from, To: to, NowMS: s.opt.Now()})
	if err != nil && !errors.Is(err, store.ErrFenced) {
		s.opt.Log.Warn().Err(err).Str("job", string(e.item.ID)).Msg("a wait could not be recorded")
	}
}

// addLocked counts an execution; a lent one holds nothing but its memory.
func (s *Scheduler) addLocked(l *load, e *execution, lent bool) {
	if lent {
		l.memory += memoryOf(e.item)
		return
	}
	l.add(e.item)
}
