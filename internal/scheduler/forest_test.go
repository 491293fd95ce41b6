package scheduler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"sandboxd/internal/admission"
	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/scheduler"
	"sandboxd/internal/store"
)

// TestForestsKeepTheirBoundsWhateverHappens drives random trees through submit, wait, end, cancel and restart.
func TestForestsKeepTheirBoundsWhateverHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(rt *rapid.T) {
			places := rapid.IntRange(1, 3).Draw(rt, "max_running")
			memory := rapid.SampledFrom([]int64{9, 9, 3, 2, 1}).Draw(rt, "memory")
			f := &forest{db: store.New(store.Options{Dir: t.TempDir(), Node: node, Log: zerolog.Nop()}), plants: map[job.ID]*plant{}, here: map[job.ID]*plant{},
				cap: scheduler.Capacity{MaxRunning: places, MaxRunningPerUID: places, MilliCPUs: 1 << 40, Memory: memory * (gib + envelope.InitMemory)}}
			if err := f.db.Open(context.Background()); err != nil {
				rt.Fatal(err)
			}
			defer f.db.Close()
			f.boot(rt)
			defer func() { f.halt(rt) }() // the daemon there is then
			rt.Repeat(map[string]func(*rapid.T){
				"root": f.submitRoot, "child": f.submitChild, "family": f.family, "wait": f.waitAny,
				"burn": f.burn, "end": f.endAny, "cancel": f.cancelAny, "restart": f.restart,
				"rest": func(rt *rapid.T) {
					time.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(rt, "ms")) * time.Millisecond)
				},
				"": f.check,
			})
			f.finale(rt)
		})
	})
}

// pick draws one of the jobs that hold; nil where none does.
func (f *forest) pick(rt *rapid.T, holds func(*plant) bool) *plant {
	var some []*plant
	f.mu.Lock()
	for _, p := range f.order {
		if holds(p) {
			some = append(some, p)
		}
	}
	f.mu.Unlock()
	if len(some) == 0 {
		return nil
	}
	return some[rapid.IntRange(0, len(some)-1).Draw(rt, "job")]
}

func active(p *plant) bool  { return p.attached && p.door != nil && !p.frozen && !p.gone() }
func growing(p *plant) bool { return !p.finished }
func draw(rt *rapid.T, what string, least, most int64) *int64 {
	n := rapid.Int64Range(least, most).Draw(rt, what)
	return &n
}

func (f *forest) submit(rt *rapid.T, c job.Caller, r admission.Request, caps [3]int64) {
	j, created, err := f.Submit(context.Background(), c, r)
	var refused *job.Error
	if errors.As(err, &refused) && refused.Code.HTTPStatus() < 500 && c.Job != "" {
		return
	}
	if err != nil || !created {
		rt.Fatalf("%+v, %v", r, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.plant(j)
	p.caps, p.stiff = caps, rapid.IntRange(0, 5).Draw(rt, "cannot be frozen") == 5
	f.order = append(f.order, p)
}

func (f *forest) submitRoot(rt *rapid.T) {
	if len(f.order) > 20 {
		return
	}
	defer f.family(rt)
	defer synctest.Wait()
	r := request()
	r.MaxDepth, r.MaxTreeJobs, r.MaxTreeLive, r.Budget.CPUMS = draw(rt, "depth", 1, 3), draw(rt, "jobs", 2, 6), draw(rt, "live", 2, 4), draw(rt, "cpu", 100, 1000)
	*r.MaxTreeLive = min(*r.MaxTreeLive, *r.MaxTreeJobs)
	f.submit(rt, user(rapid.SampledFrom([]uint32{alice, bob}).Draw(rt, "uid")), r, [3]int64{*r.MaxDepth, *r.MaxTreeJobs, *r.MaxTreeLive})
}

func (f *forest) submitChild(rt *rapid.T) {
	p := f.pick(rt, active)
	if p == nil {
		return
	}
	r := request()
	r.Profile = rapid.SampledFrom([]string{"", "", "default", "helper", "other"}).Draw(rt, "profile")
	if rapid.Bool().Draw(rt, "names a budget") {
		r.Budget.CPUMS, r.Budget.Strict = draw(rt, "cpu", 1, 600), rapid.Bool().Draw(rt, "strict")
	}
	f.submit(rt, job.JobCaller(p.job), r, [3]int64{})
}

func (f *forest) waitAny(rt *rapid.T) {
	p := f.pick(rt, func(p *plant) bool { return active(p) && p.waiting < 2 })
	if p == nil {
		return
	}
	if on := f.pick(rt, func(c *plant) bool { return c.job.Parent == p.job.ID && !c.finished }); on != nil {
		f.block(p, on)
	}
}

// family has jobs delegate and wait, so that there is more of it.
func (f *forest) family(rt *rapid.T) {
	for range rapid.IntRange(2, 6).Draw(rt, "times") {
		f.submitChild(rt)
		f.waitAny(rt)
		synctest.Wait()
	}
}

// block has a job wait for another as the server does.
func (f *forest) block(p, on *plant) {
	f.mu.Lock()
	door := p.door
	p.waiting++
	f.mu.Unlock()
	s := f.Scheduler
	f.waits.Go(func() {
		blocked, release := s.Wait(door, job.JobCaller(p.job), on.job.ID)
		denied := false
		select {
		case <-s.Done(on.job.ID):
		case <-blocked.Done():
			var e *job.Error
			denied = errors.As(context.Cause(blocked), &e)
		}
		release()
		f.mu.Lock()
		defer f.mu.Unlock()
		p.waiting--
		p.denied = p.denied || denied
		if p.frozen && p.waiting == 0 && door.Err() == nil && !f.halting {
			f.breaks("%s got its answer while it is frozen", p.job.ID)
		}
	})
}

// burn uses cpu; the poll finds what is beyond the budget afterwards and ends the job.
func (f *forest) burn(rt *rapid.T) {
	p := f.pick(rt, active)
	if p == nil {
		return
	}
	left, limited := f.CPULeft(context.Background(), p.job, time.Duration(p.cpu)*time.Millisecond)
	if !limited {
		rt.Fatalf("%s has no budget", p.job.ID)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := *draw(rt, "burnt", 1, 300)
	p.cpu += n
	if beyond := n - max(left.Milliseconds(), 0); beyond >= 0 {
		p.over += beyond
		p.exit(job.Outcome{Status: job.BudgetExhausted, Reason: job.ReasonBudgetCPU})
	}
}

func (f *forest) endAny(rt *rapid.T) {
	if p := f.pick(rt, active); p != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		p.exit(job.Outcome{Status: job.Success})
	}
}

func (f *forest) cancelAny(rt *rapid.T) {
	if p := f.pick(rt, growing); p != nil {
		j, err := f.Cancel(context.Background(), user(alice), p.job.ID, rapid.Bool().Draw(rt, "kill"), job.ReasonByCaller)
		if err != nil {
			rt.Fatal(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		p.finished = p.finished || j.State == job.Done
	}
}

// restart loses the daemon, now and then amid what it does, and starts the next one.
func (f *forest) restart(rt *rapid.T) {
	if rapid.IntRange(0, 2).Draw(rt, "restart") > 0 {
		return
	}
	if p := f.pick(rt, active); p != nil && rapid.Bool().Draw(rt, "amid an end") {
		f.mu.Lock()
		p.exit(job.Outcome{Status: job.Success})
		f.mu.Unlock()
	}
	f.halt(rt)
	left, err := f.db.Unfinished(context.Background(), node)
	if err != nil {
		rt.Fatal(err)
	}
	f.excess = len(left)
	f.boot(rt)
}

func (f *forest) records(rt *rapid.T) (all map[job.ID]job.Job, pots map[job.ID]store.PotLine) {
	listed, err := f.db.Jobs(context.Background(), store.Viewer{All: true}, store.Filter{Limit: 1000})
	all, pots = map[job.ID]job.Job{}, map[job.ID]store.PotLine{}
	var ids []job.ID
	for _, j := range listed {
		all[j.ID] = j
		ids = append(ids, j.ID)
	}
	lines, potsErr := f.db.Pots(context.Background(), ids...)
	for _, id := range ids {
		for _, l := range lines[id] {
			if l.Dimension == string(budget.CPUMS) && l.Limit != nil {
				pots[id] = l
			}
		}
	}
	if err != nil || potsErr != nil || len(all) != len(f.order) || len(pots) != len(all) {
		rt.Fatalf("%d jobs and %d budgets of %d: %v, %v", len(all), len(pots), len(f.order), err, potsErr)
	}
	return all, pots
}

func (f *forest) check(rt *rapid.T) {
	synctest.Wait()
	all, pots := f.records(rt)
	f.mu.Lock()
	defer f.mu.Unlock()
	hold, over := 0, map[job.ID]int64{}
	ever, live := map[job.ID]int64{}, map[job.ID]int64{}
	for _, p := range f.order {
		j := all[p.job.ID]
		p.finished = p.finished || j.State == job.Done
		ever[j.Root]++
		if j.State != job.Done {
			live[j.Root]++
		}
		if j.State.Live() && j.State != job.Waiting && !p.gone() {
			hold++
		}
		if (j.State == job.Waiting) != p.frozen {
			f.breaks("%s is %s, frozen: %v", j.ID, j.State, p.frozen)
		}
		if caps := f.plants[j.Root].caps; int64(j.Depth) > caps[0] || ever[j.Root] > caps[1] || live[j.Root] > caps[2] {
			f.breaks("%s at depth %d, %d ever, %d live; the caps are %v", j.ID, j.Depth, ever[j.Root], live[j.Root], caps)
		}
		for id := j.ID; id != ""; id = all[id].Parent {
			over[id] += p.over
		}
	}
	if hold > max(f.cap.MaxRunning, f.excess) {
		f.breaks("%d hold places, %d may and %d were left", hold, f.cap.MaxRunning, f.excess)
	}
	f.excess = min(f.excess, hold)
	for _, p := range f.order {
		id, l, own := p.job.ID, pots[p.job.ID], p.cpu
		if all[id].State == job.Done {
			own = 0 // in it
		}
		if l.Spent+l.Granted+own > *l.Limit+over[id] || all[id].State == job.Done && l.Granted != 0 {
			f.breaks("%s, %s: %d spent, %d granted, %d own, the limit is %d and %d were overshot", id, all[id].State, l.Spent, l.Granted, own, *l.Limit, over[id])
		}
		if t, err := f.db.Tree(context.Background(), id); p.job.Parent == "" && (err != nil || int64(t.JobsEver) != ever[id] || int64(t.JobsLive) != live[id]) {
			f.breaks("%+v, want %d ever and %d live: %v", t, ever[id], live[id], err)
		}
	}
	if len(f.broken) > 0 {
		rt.Fatal(f.broken)
	}
}

// finale lets everything end: who has children waits for them, and ends before them only where the wait is denied.
func (f *forest) finale(rt *rapid.T) {
	for left := 1; left > 0; {
		if left++; left > 2000 { // in 200 ms of the bubble's time each
			rt.Fatalf("a deadlock: %d queued, %d run", f.Queued(), f.Running())
		}
		f.check(rt)
		open := 0
		for _, p := range f.order {
			f.mu.Lock()
			var child *plant
			for _, c := range f.order {
				if c.job.Parent == p.job.ID && !c.finished {
					child = c
				}
			}
			able, idle := active(p), p.waiting == 0
			if able && idle && (child == nil || p.denied) {
				p.exit(job.Outcome{Status: job.Success})
			}
			if !p.finished {
				open++
			}
			f.mu.Unlock()
			if able && idle && child != nil && !p.denied {
				f.block(p, child)
			}
		}
		time.Sleep(200 * time.Millisecond)
		if open == 0 {
			break
		}
	}
	all, pots := f.records(rt)
	used := map[job.ID]int64{}
	for _, p := range f.order {
		used[all[p.job.ID].Root] += p.cpu
		if all[p.job.ID].State != job.Done || pots[p.job.ID].Granted != 0 {
			rt.Fatalf("%+v, %+v", all[p.job.ID], pots[p.job.ID])
		}
	}
	for id, n := range used {
		if pots[id].Spent != n {
			rt.Fatalf("the tree %s spent %d, its jobs used %d", id, pots[id].Spent, n)
		}
	}
	if f.Queued() != 0 || f.Running() != 0 {
		rt.Fatalf("%d queued, %d running", f.Queued(), f.Running())
	}
}

// boot starts a daemon on the store as it is.
func (f *forest) boot(rt *rapid.T) {
	f.epoch++
	f.halting = false
	bounds := envelope.Bounds{Mode: envelope.SingleTurn, Image: "i", Images: []string{"i"}, Workspace: envelope.Workspace{Mode: job.WorkspaceRO, Git: envelope.GitRO},
		Egress: envelope.EgressNone, Budget: budget.Limits{budget.CPUMS: 1000}, BudgetInherit: envelope.BudgetShare, MaxDepth: 3, MaxTreeJobs: 6, MaxTreeLive: 4,
		Detached: true, Trust: envelope.Untrusted, MaxRisk: envelope.RiskCode, Tools: envelope.Tools{Allow: []string{"*"}}}
	p := envelope.Posture{Runtime: "runc", MilliCPUs: 1000, Memory: gib, Pids: 9, Nofile: 99, TmpBytes: mib, HomeBytes: mib, OutBytes: mib, Inodes: 9, OutputKeep: mib, TimeoutMS: 36_000_000}
	rules := admission.Rules{MilliCPUs: f.cap.MilliCPUs, Memory: f.cap.Memory, MinFreeDisk: 1, MaxQueued: 99, MaxQueuedPer: 99}
	for name, to := range map[string][]string{"default": {"default", "helper"}, "helper": {"helper"}, "other": nil} {
		bounds.Delegates = to
		rules.Profiles = append(rules.Profiles, envelope.Profile{Name: name, Default: p, Limit: p, Allows: bounds, WorkspaceMode: job.WorkspaceRO})
	}
	f.Scheduler = scheduler.New(scheduler.Options{Ledger: f.db, Trees: f.db, Node: f.db, Checker: admission.New(rules, host{}, host{}, host{}),
		Capacity: f.cap, NodeName: node, Log: zerolog.Nop()})
	if err := f.Open(context.Background(), f, f.epoch); err != nil {
		rt.Fatal(err)
	}
}

func (f *forest) halt(rt *rapid.T) {
	f.mu.Lock()
	f.halting = true
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f.Close(ctx); err != nil {
		rt.Error(err)
	}
	f.waits.Wait()
}
