package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sandboxd/internal/job"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/store"
)

// Periods of the background work.
const (
	engineEvery = 2 * time.Second
	sweepEvery  = 15 * time.Second
	pruneEvery  = time.Minute

	sweepAtOnce = 4               // removals at once
	bootLook    = 3 * time.Second // at the engine, before the socket opens
)

// Bounds of what is kept of one owner beside the configured ones.
const (
	keepBytesPerUser  = 20 << 30 // specs and streams
	keepEventsPerUser = 100_000
	pruneLimit        = 1000 // jobs a round
)

// engineState is what was last seen of the engine.
type engineState struct {
	mu       sync.Mutex
	up       bool
	opened   bool // the sandbox is open
	version  string
	api      string
	problem  string
	notified bool
}

// openBackground starts what goes on beside the jobs.
func (d *daemon) openBackground(context.Context) (func(context.Context) error, error) {
	for _, w := range []struct {
		every time.Duration
		do    func(context.Context)
	}{{engineEvery, d.watchEngine}, {sweepEvery, d.sweep}, {pruneEvery, d.prune}} {
		d.work.Add(1)
		go func() {
			defer d.work.Done()
			t := time.NewTicker(w.every)
			defer t.Stop()
			for {
				select {
				case <-d.ctx.Done():
					return
				case <-t.C:
					w.do(d.ctx)
				}
			}
		}()
	}
	d.work.Add(1)
	go func() {
		defer d.work.Done()
		select {
		case err := <-d.db.Fatal():
			select {
			case d.fatal <- err:
			default:
			}
		case <-d.ctx.Done():
		}
	}()
	return func(context.Context) error { d.cancel(); d.work.Wait(); return nil }, nil
}

// tryEngine asks the engine and opens the sandbox the first time it answers. An engine that is away is no error: the
// daemon runs, says so, and queues.
func (d *daemon) tryEngine(ctx context.Context) error {
	look, cancel := context.WithTimeout(ctx, bootLook)
	info, err := d.eng.Info(look)
	cancel()
	d.engine.mu.Lock()
	opened := d.engine.opened
	d.engine.mu.Unlock()
	if err == nil && !opened {
		left := d.slots.all()
		if err = d.box.Open(ctx, left); err == nil {
			err = errors.Join(d.box.ClearStages(), d.removeOrphans(ctx, left))
		}
		if err != nil && !sandbox.Passing(err) {
			return err
		}
	}
	s := &d.engine
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.up || !s.notified {
			d.log.Warn().Err(err).Msg("the engine does not answer; jobs are queued until it does")
		}
		s.up, s.problem, s.notified = false, err.Error(), true
		d.engineUp.Store(false)
		return nil
	}
	if !s.up {
		d.log.Info().Str("version", info.Version).Str("api", info.APIVersion).Msg("the engine answers")
	}
	s.up, s.opened, s.problem, s.version, s.api = true, true, "", info.Version, info.APIVersion
	d.engineUp.Store(true)
	return nil
}

// removeOrphans takes away the slots of an earlier daemon that no job will come back for: warm ones, and those of jobs
// that ended just before it did. It goes on in the background.
func (d *daemon) removeOrphans(ctx context.Context, left []sandbox.SlotRecord) error {
	jobs, err := d.db.Unfinished(ctx, nodeName)
	if err != nil {
		return err
	}
	wanted := map[job.ID]bool{}
	for _, j := range jobs {
		wanted[j.ID] = true
	}
	d.work.Add(1)
	go func() {
		defer d.work.Done()
		for _, r := range left {
			if wanted[r.Job] || d.ctx.Err() != nil {
				continue
			}
			if err := d.box.RemoveByRecord(d.ctx, r); err != nil && d.ctx.Err() == nil {
				d.log.Warn().Err(err).Str("slot", r.Slot).Msg("a slot an earlier daemon left could not be removed; it is tried again")
			}
		}
	}()
	return nil
}

func (d *daemon) watchEngine(ctx context.Context) {
	was := d.engineUp.Load()
	if err := d.tryEngine(ctx); err != nil && ctx.Err() == nil {
		select {
		case d.fatal <- err:
		default:
		}
		return
	}
	if !was && d.engineUp.Load() {
		d.sched.Wake()
	}
}

// sweep takes away every slot that no job and no pool of this daemon holds and looks for what has no record.
func (d *daemon) sweep(ctx context.Context) {
	if !d.engineUp.Load() {
		return
	}
	d.pool.Expire(ctx)
	var left errgroup.Group
	left.SetLimit(sweepAtOnce)
	for _, r := range d.slots.all() {
		if d.box.Holds(r.Slot) || d.sched.Holds(r.Job) {
			continue
		}
		left.Go(func() error {
			if err := d.box.RemoveByRecord(ctx, r); err != nil && ctx.Err() == nil {
				d.log.Warn().Err(err).Str("slot", r.Slot).Int("tries", r.Tries).Msg("a cleanup failed again")
			}
			return nil
		})
	}
	_ = left.Wait()
	strays, err := d.box.Sweep(ctx, d.slots.all())
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn().Err(err).Msg("the sweep failed")
		}
		return
	}
	for _, c := range strays.Containers {
		d.log.Warn().Str("container", c).Msg("a container carries our label and has no record; it is left alone")
	}
}

// prune forgets what is past its retention.
func (d *daemon) prune(ctx context.Context) {
	ids, err := d.db.Prune(ctx, store.PrunePolicy{
		OlderThanMS: time.Now().Add(-d.cfg.Jobs.Retention).UnixMilli(), MaxPerOwner: d.cfg.Jobs.KeepPerUser,
		MaxBytesPerOwner: keepBytesPerUser, MaxEventsPerOwner: keepEventsPerUser, Limit: pruneLimit})
	if err != nil && ctx.Err() == nil {
		d.log.Warn().Err(err).Msg("pruning failed")
	}
	kept, err := d.logs.List()
	if err != nil && ctx.Err() == nil {
		d.log.Warn().Err(err).Msg("the recorded outputs cannot be listed")
	}
	for _, id := range kept {
		// Of a job that was pruned when its output could not be removed.
		if _, err := d.db.Job(ctx, id); job.CodeOf(err) == job.CodeNotFound && err != nil {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if err := d.logs.Remove(id); err != nil {
			d.log.Warn().Err(err).Str("job", string(id)).Msg("a pruned job's stream could not be removed")
		}
	}
}

// unfinished counts the caller's jobs that are not done, by state.
func (d *daemon) unfinished(ctx context.Context, c job.Caller) map[string]int {
	out := map[string]int{}
	jobs, err := d.db.Jobs(ctx, store.ViewerOf(c),
		store.Filter{States: []job.State{job.Queued, job.Starting, job.Running, job.Waiting, job.Finishing}, Limit: 1000})
	if err != nil {
		return out
	}
	for _, j := range jobs {
		out[string(j.State)]++
	}
	return out
}
