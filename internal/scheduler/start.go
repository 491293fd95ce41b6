package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// startOne claims the next job if there is one and a place for it.
func (s *Scheduler) startOne() bool {
	if s.stop.Err() != nil || !s.opt.EngineUp() {
		return false
	}
	s.mu.Lock()
	it, ok := s.queue.pick(s.loadLocked(), s.opt.Capacity)
	if ok {
		s.queue.remove(it.ID)
		// The place is taken before the claim, so that two claims never share one.
		s.running[it.ID] = &execution{item: it}
	}
	s.mu.Unlock()
	if !ok {
		return false
	}
	j, err := s.claim(it)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.startLocked(it, j, false)
		return true
	case errors.Is(err, store.ErrFenced), job.CodeOf(err) == job.CodeNotFound:
		delete(s.running, it.ID)
		s.finishedLocked(it.ID)
		return true
	}
	delete(s.running, it.ID)
	s.queue.add(it)
	if s.stop.Err() == nil {
		s.opt.Log.Error().Err(err).Str("job", string(it.ID)).Msg("a queued job could not be claimed; it stays queued")
	}
	return false
}

// claim moves a job to starting. Where the claim was committed and its answer lost, the record shows it: nobody else
// claims in this node's name and epoch. While the record cannot be read the job stays queued here, whatever it is.
func (s *Scheduler) claim(it store.QueueItem) (job.Job, error) {
	j, err := s.opt.Ledger.Claim(s.stop, it.ID, store.Claim{Node: s.opt.NodeName, Epoch: s.epoch, NowMS: s.opt.Now()})
	if err == nil {
		return j, nil
	}
	now, readErr := s.opt.Ledger.Job(s.stop, it.ID)
	switch {
	case readErr != nil:
		return job.Job{}, readErr
	case now.State == job.Starting && now.Node == s.opt.NodeName && now.Epoch == s.epoch && now.Attempt == it.Attempt:
		return now, nil
	}
	return job.Job{}, err
}

func (s *Scheduler) loadLocked() load {
	l := newLoad()
	for _, e := range s.running {
		s.addLocked(&l, e, e.lent)
	}
	return l
}

// startLocked gives a claimed job to the runner in a goroutine of its own.
func (s *Scheduler) startLocked(it store.QueueItem, j job.Job, resume bool) {
	kill, cancel := context.WithCancelCause(context.Background())
	if e := s.running[it.ID]; e != nil && e.wish != nil {
		cancel(e.wish)
	}
	s.running[it.ID] = &execution{item: it, cancel: cancel}
	if _, ok := s.done[it.ID]; !ok {
		s.done[it.ID] = make(chan struct{})
	}
	if j.CancelReason != "" {
		cancel(&job.CancelCause{Reason: j.CancelReason, Kill: j.CancelKill})
	}
	s.workers.Add(1)
	go s.work(kill, cancel, j, resume)
}

func (s *Scheduler) work(kill context.Context, cancel context.CancelCauseFunc, j job.Job, resume bool) {
	defer s.workers.Done()
	defer cancel(nil)
	do := s.runner.Run
	if resume {
		do = s.runner.Resume
	}
	d := do(kill, s.stop, j)
	var err error
	if d == job.Unclaim {
		if !resume {
			s.rest(kill, time.Duration(j.Attempt)*retryAfter)
		}
		err = s.unclaim(j)
	}

	s.mu.Lock()
	delete(s.running, j.ID)
	_, open := s.done[j.ID]
	switch {
	// A cancel that was stored before the job went back ended it there, and one stored after closed the channel.
	case d == job.Unclaim && err == nil && open && kill.Err() == nil:
		it := itemOf(j)
		it.Attempt++
		s.queue.add(it)
	case d == job.Settled, d == job.Unclaim && (err == nil || errors.Is(err, store.ErrFenced)):
		s.finishedLocked(j.ID)
	}
	s.mu.Unlock()
	s.Wake()
}

// retryAfter is how long a job rests before it is queued again, times its attempt: what kept it from starting may
// need a while, and attempts are few.
const retryAfter = 2 * time.Second

// unclaim puts a job whose command was never handed over back into the ledger's queue. It tries until that is done or
// the daemon stops, for a job left starting would be nobody's.
func (s *Scheduler) unclaim(j job.Job) error {
	ctx := context.WithoutCancel(s.stop)
	for {
		err := s.opt.Ledger.Move(ctx, store.Move{ID: j.ID, Attempt: j.Attempt, From: job.Starting, To: job.Queued, NowMS: s.opt.Now()})
		if err == nil || errors.Is(err, store.ErrFenced) {
			return err
		}
		s.opt.Log.Error().Err(err).Str("job", string(j.ID)).Msg("a job could not be queued again; it is tried until the daemon stops, and the next one settles it")
		if s.stop.Err() != nil {
			return err
		}
		s.rest(context.Background(), tick)
	}
}

// rest waits, but not for a job that is to end nor beyond the daemon's stop.
func (s *Scheduler) rest(kill context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-kill.Done():
	case <-s.stop.Done():
	}
}

// endUnfit ends a job that was queued when there was more capacity: it could never start, and all would wait for it.
func (s *Scheduler) endUnfit(ctx context.Context, it store.QueueItem) error {
	now := s.opt.Now()
	o := job.Outcome{Status: job.Failed, Reason: job.ReasonStartFailed, Detail: fmt.Sprintf(
		"needs %g cores and %s of memory; since the daemon's restart all jobs together may use %g and %s", float64(it.MilliCPUs)/1000,
		envelope.ShowBytes(memoryOf(it)), float64(s.opt.Capacity.MilliCPUs)/1000, envelope.ShowBytes(s.opt.Capacity.Memory))}
	err := s.opt.Ledger.Finish(ctx, store.Finish{ID: it.ID, Attempt: it.Attempt, From: job.Queued, Outcome: o, Times: job.Times{Finished: now, Settled: now}})
	if err != nil && !errors.Is(err, store.ErrFenced) {
		return fmt.Errorf("scheduler: ending job %s, which could never start: %w", it.ID, err)
	}
	s.opt.Log.Warn().Str("job", string(it.ID)).Msg(o.Detail)
	return nil
}

// finishedLocked wakes all who wait for the job.
func (s *Scheduler) finishedLocked(id job.ID) {
	s.forgetLocked(id)
	if ch, ok := s.done[id]; ok {
		close(ch)
		delete(s.done, id)
	}
}
