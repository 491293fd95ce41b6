package ledgertest

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// Reopenable is a ledger that a test can close and open again.
type Reopenable interface {
	Ledger() store.Ledger
	Reopen() error
	// Crash opens it again as it would be found had its process been killed now.
	Crash() error
}

// RunModel does what it likes to a ledger, legal or not, and compares it with a model of its contract: the job of each
// step, its tree and the budgets of that after it, all that can be read after a reopening and at the end. At last it ends
// what lives, children first, and looks whether the books balance.
// open returns an empty ledger that is closed at the end of the test it was made for.
func RunModel(t *testing.T, open func(*rapid.T) Reopenable) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: t, ledger: open(rt), jobs: map[job.ID]*modelJob{}}
		for range 2 {
			rt.Repeat(map[string]func(*rapid.T){
				"admit":   m.admit,
				"child":   m.child,
				"run":     m.run,
				"use":     m.use,
				"claim":   m.claim,
				"move":    m.move,
				"unclaim": m.unclaim,
				"finish":  m.finish,
				"cancel":  m.cancel,
				"freeze":  m.freeze,
				"restart": m.restart,
				"":        m.checkTouched,
			})
		}
		m.check(rt)
		m.drain(rt)
	})
}

// modelJob is what the contract says of a job.
type modelJob struct {
	job.Job
	ended   job.Status
	started bool // its command was handed over
	parent  *modelJob
	tree    *modelTree
	budget  *modelBudget // nil: none
}

type model struct {
	t       *testing.T
	ledger  Reopenable
	order   []job.ID  // as admitted
	touched *modelJob // by the last step
	jobs    map[job.ID]*modelJob
	trees   []*modelTree
	frozen  *store.Freeze
}

func (m *model) pick(rt *rapid.T) *modelJob {
	return m.pickOf(rt, func(*modelJob) bool { return true })
}

// pickOf picks among the jobs of a kind.
func (m *model) pickOf(rt *rapid.T, kind func(*modelJob) bool) *modelJob {
	var of []*modelJob
	for _, id := range m.order {
		if j := m.jobs[id]; kind(j) {
			of = append(of, j)
		}
	}
	if len(of) == 0 {
		rt.Skip("no job of the kind yet")
	}
	m.touched = of[rapid.IntRange(0, len(of)-1).Draw(rt, "job")]
	return m.touched
}

// fenced compares an error with what the model expects of a guard.
func fenced(rt *rapid.T, err error, holds bool) {
	if holds && err != nil {
		rt.Fatalf("the guard held: %v", err)
	}
	if !holds && !errors.Is(err, store.ErrFenced) {
		rt.Fatalf("the guard did not hold: %v", err)
	}
}

func (m *model) claim(rt *rapid.T) { m.claimOne(rt, m.pick(rt)) }

func (m *model) claimOne(rt *rapid.T, j *modelJob) {
	holds := j.State == job.Queued
	_, err := m.ledger.Ledger().Claim(context.Background(), j.ID, store.Claim{Node: Node, Epoch: 1, NowMS: Start})
	fenced(rt, err, holds)
	if holds {
		j.State = job.Starting
	}
}

// run leads a queued job to running, so that trees grow.
func (m *model) run(rt *rapid.T) {
	j := m.pickOf(rt, func(j *modelJob) bool { return j.State == job.Queued })
	m.claimOne(rt, j)
	m.moveOne(rt, j, j.Attempt, job.Starting, job.Running)
}

func drawState(rt *rapid.T, label string, from []job.State) job.State {
	return rapid.SampledFrom(from).Draw(rt, label)
}

func (m *model) move(rt *rapid.T) {
	j := m.pick(rt)
	from := drawState(rt, "from", []job.State{j.State, job.Starting, job.Running})
	to := drawState(rt, "to", []job.State{job.Running, job.Waiting, job.Finishing})
	if job.CheckTransition(from, to) != nil {
		rt.Skip("not legal")
	}
	m.moveOne(rt, j, rapid.SampledFrom([]int{j.Attempt, j.Attempt + 1}).Draw(rt, "attempt"), from, to)
}

func (m *model) moveOne(rt *rapid.T, j *modelJob, attempt int, from, to job.State) {
	holds := j.State == from && attempt == j.Attempt
	fenced(rt, m.ledger.Ledger().Move(context.Background(), store.Move{ID: j.ID, Attempt: attempt, From: from, To: to, NowMS: Start}), holds)
	if holds {
		j.State, j.started = to, j.started || to == job.Running
	}
}

func (m *model) unclaim(rt *rapid.T) {
	j := m.pick(rt)
	holds := j.State == job.Starting
	fenced(rt, m.ledger.Ledger().Move(context.Background(), store.Move{ID: j.ID, Attempt: j.Attempt, From: job.Starting, To: job.Queued, NowMS: Start}), holds)
	switch {
	case holds && j.CancelReason != "":
		m.end(j, job.Cancelled, store.Finish{})
	case holds:
		j.State, j.Attempt = job.Queued, j.Attempt+1
	}
}

// end is what every end of a job changes.
func (m *model) end(j *modelJob, s job.Status, f store.Finish) {
	j.State, j.ended = job.Done, s
	j.tree.live--
	if j.budget != nil {
		j.settle(f)
	}
}

func (m *model) finish(rt *rapid.T) {
	j := m.pick(rt)
	from := drawState(rt, "from", []job.State{j.State, job.Running, job.Finishing})
	if from == job.Done {
		rt.Skip("not legal")
	}
	m.finishOne(rt, j, from)
}

func (m *model) finishOne(rt *rapid.T, j *modelJob, from job.State) {
	f := Success(j.Job, from)
	f.Attempt = j.Attempt
	j.drawReport(rt, &f)
	err := m.ledger.Ledger().Finish(context.Background(), f)
	if j.State == from && j.liveChild() != nil {
		if !errors.Is(err, store.ErrLiveChildren) {
			rt.Fatalf("with a live child: %v", err)
		}
		return
	}
	holds := j.State == from
	fenced(rt, err, holds)
	if holds {
		m.end(j, job.Success, f)
	}
}

func (m *model) cancel(rt *rapid.T) {
	j := m.pick(rt)
	c := store.Cancel{
		Reason: rapid.SampledFrom([]job.Reason{job.ReasonByCaller, job.ReasonByOperator}).Draw(rt, "reason"),
		Kill:   rapid.Bool().Draw(rt, "kill"), NowMS: Start,
	}
	_, ended, err := m.ledger.Ledger().Cancel(context.Background(), j.ID, c)
	if err != nil || ended != (j.State == job.Queued) {
		rt.Fatalf("cancel of a job that is %s: ended %v, %v", j.State, ended, err)
	}
	if j.State == job.Done {
		return
	}
	if j.CancelReason == "" {
		j.CancelReason = c.Reason
	}
	j.CancelKill = j.CancelKill || c.Kill
	if j.State == job.Queued {
		m.end(j, job.Cancelled, store.Finish{})
	}
}
