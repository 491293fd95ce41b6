package ledgertest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// Reopenable is a ledger that a test can close and open again.
type Reopenable interface {
	Ledger() store.Ledger
	Reopen() error
}

// RunModel does what it likes to a ledger, legal or not, and compares it with a model of its contract: the job of each step
// after it, all that can be read after a reopening and at the end.
// open returns an empty ledger that is closed at the end of the test it was made for.
func RunModel(t *testing.T, open func(*rapid.T) Reopenable) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{t: t, ledger: open(rt), jobs: map[job.ID]*modelJob{}}
		rt.Repeat(map[string]func(*rapid.T){
			"admit":   m.admit,
			"child":   m.child,
			"claim":   m.claim,
			"move":    m.move,
			"unclaim": m.unclaim,
			"finish":  m.finish,
			"cancel":  m.cancel,
			"reopen":  m.reopen,
			"":        m.checkTouched,
		})
		m.check(rt)
	})
}

// modelJob is what the contract says of a job.
type modelJob struct {
	job.Job
	ended job.Status
}

type model struct {
	t       *testing.T
	ledger  Reopenable
	order   []job.ID  // as admitted
	touched *modelJob // by the last step
	jobs    map[job.ID]*modelJob
}

func (m *model) pick(rt *rapid.T) *modelJob {
	if len(m.order) == 0 {
		rt.Skip("no job yet")
	}
	m.touched = m.jobs[rapid.SampledFrom(m.order).Draw(rt, "job")]
	return m.touched
}

func (m *model) add(rt *rapid.T, j job.Job) {
	if _, created, err := m.ledger.Ledger().Admit(context.Background(), Admission(j)); err != nil || !created {
		rt.Fatalf("admit: %v, %v", created, err)
	}
	m.touched = &modelJob{Job: j}
	m.jobs[j.ID], m.order = m.touched, append(m.order, j.ID)
}

func (m *model) admit(rt *rapid.T) {
	m.add(rt, NewJob(m.t, rapid.Uint32Range(1, 3).Draw(rt, "uid")))
}

func (m *model) child(rt *rapid.T) {
	parent := m.pick(rt)
	c := NewChild(m.t, parent.Job)
	if parent.State != job.Done {
		m.add(rt, c)
		return
	}
	if _, _, err := m.ledger.Ledger().Admit(context.Background(), Admission(c)); job.CodeOf(err) != job.CodeConflict {
		rt.Fatalf("a child of an ended job: %v", err)
	}
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

func (m *model) claim(rt *rapid.T) {
	j := m.pick(rt)
	holds := j.State == job.Queued
	_, err := m.ledger.Ledger().Claim(context.Background(), j.ID, store.Claim{Node: Node, Epoch: 1, NowMS: Start})
	fenced(rt, err, holds)
	if holds {
		j.State = job.Starting
	}
}

func drawState(rt *rapid.T, label string, from []job.State) job.State {
	return rapid.SampledFrom(from).Draw(rt, label)
}

func (m *model) move(rt *rapid.T) {
	j := m.pick(rt)
	from := drawState(rt, "from", []job.State{j.State, job.Starting, job.Running})
	to := drawState(rt, "to", []job.State{job.Running, job.Waiting, job.Finishing})
	attempt := rapid.SampledFrom([]int{j.Attempt, j.Attempt + 1}).Draw(rt, "attempt")
	if job.CheckTransition(from, to) != nil {
		rt.Skip("not legal")
	}
	holds := j.State == from && attempt == j.Attempt
	fenced(rt, m.ledger.Ledger().Move(context.Background(), store.Move{ID: j.ID, Attempt: attempt, From: from, To: to, NowMS: Start}), holds)
	if holds {
		j.State = to
	}
}

func (m *model) unclaim(rt *rapid.T) {
	j := m.pick(rt)
	holds := j.State == job.Starting
	fenced(rt, m.ledger.Ledger().Move(context.Background(), store.Move{ID: j.ID, Attempt: j.Attempt, From: job.Starting, To: job.Queued, NowMS: Start}), holds)
	switch {
	case holds && j.CancelReason != "":
		m.end(j, job.Cancelled)
	case holds:
		j.State, j.Attempt = job.Queued, j.Attempt+1
	}
}

func (m *model) end(j *modelJob, s job.Status) {
	j.State, j.ended = job.Done, s
}

func (m *model) finish(rt *rapid.T) {
	j := m.pick(rt)
	from := drawState(rt, "from", []job.State{j.State, job.Running, job.Finishing})
	if from == job.Done {
		rt.Skip("not legal")
	}
	f := Success(j.Job, from)
	f.Attempt = j.Attempt
	holds := j.State == from
	fenced(rt, m.ledger.Ledger().Finish(context.Background(), f), holds)
	if holds {
		m.end(j, job.Success)
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
		m.end(j, job.Cancelled)
	}
}

func (m *model) reopen(rt *rapid.T) {
	if err := m.ledger.Reopen(); err != nil {
		rt.Fatal(err)
	}
	m.check(rt)
}

func (m *model) checkTouched(rt *rapid.T) {
	if m.touched != nil {
		m.checkJob(rt, m.ledger.Ledger(), m.touched)
	}
}

// checkJob compares one job with the model.
func (m *model) checkJob(rt *rapid.T, l store.Ledger, want *modelJob) {
	got, err := l.Job(context.Background(), want.ID)
	if err != nil || got.State != want.State || got.Attempt != want.Attempt || got.CancelReason != want.CancelReason || got.CancelKill != want.CancelKill {
		rt.Fatalf("job %s is %s/%d/%q/%v, want %s/%d/%q/%v: %v", want.ID, got.State, got.Attempt, got.CancelReason, got.CancelKill,
			want.State, want.Attempt, want.CancelReason, want.CancelKill, err)
	}
	if (got.Outcome != nil) != (want.State == job.Done) || got.Outcome != nil && got.Outcome.Status != want.ended {
		rt.Fatalf("job %s has outcome %+v, want %q", want.ID, got.Outcome, want.ended)
	}
}

// check compares all reads with the model.
func (m *model) check(rt *rapid.T) {
	l := m.ledger.Ledger()
	var queued, live []job.ID
	byState := map[job.State]int{}
	for _, id := range m.order {
		want := m.jobs[id]
		byState[want.State]++
		if want.State == job.Queued {
			queued = append(queued, id)
		} else if want.State.Live() {
			live = append(live, id)
		}
		m.checkJob(rt, l, want)
	}
	m.checkLists(rt, l, queued, live, byState)
}

func (m *model) checkLists(rt *rapid.T, l store.Ledger, queued, live []job.ID, byState map[job.State]int) {
	q, err := l.Queued(context.Background())
	var got []job.ID
	for _, item := range q {
		got = append(got, item.ID)
	}
	slices.Sort(queued)
	if err != nil || !slices.Equal(got, queued) {
		rt.Fatalf("queue %v, want %v: %v", got, queued, err)
	}
	u, err := l.Unfinished(context.Background(), Node)
	gotLive := ids(u)
	slices.Sort(gotLive)
	slices.Sort(live)
	if err != nil || !slices.Equal(gotLive, live) && len(live) > 0 {
		rt.Fatalf("unfinished %v, want %v: %v", gotLive, live, err)
	}
	c, err := l.Counts(context.Background())
	if err != nil || c.Total != len(m.order) {
		rt.Fatalf("counts %+v: %v", c, err)
	}
	for s, n := range byState {
		if c.ByState[s] != n {
			rt.Fatalf("counts %+v, want %v", c, byState)
		}
	}
}
