package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"sandboxd/internal/job"
	"sandboxd/internal/scheduler"
)

// model does what users, engine, disk and operator can do, in any order, and looks after each step at what must hold:
// never more than the capacity, never a job twice, every job ends once, everybody who waits for one hears of it.
type model struct {
	*stage
	ids      []job.ID
	giveBack atomic.Bool
	epoch    int64
}

// timeless hides the test's deadline, which has no meaning in a bubble.
type timeless struct{ testing.TB }

var tight = scheduler.Capacity{MaxRunning: 4, MaxRunningPerUID: 2, MilliCPUs: 8000, Memory: 8*gib + 4*24*mib}

func TestWhateverHappensTheBoundsHoldAndEverythingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(rt *rapid.T) {
			m := &model{epoch: 1}
			m.stage = open(t, tight, newMemory(), 1, m.watch)
			defer func() { m.close() }() // the stage there is then
			rt.Repeat(map[string]func(*rapid.T){
				"submit":    m.submitAny,
				"end":       m.endAny,
				"cancel":    m.cancelAny,
				"engine":    func(rt *rapid.T) { m.away.Store(rapid.Bool().Draw(rt, "away")) },
				"give back": func(rt *rapid.T) { m.giveBack.Store(rapid.Bool().Draw(rt, "back")) },
				"wait": func(rt *rapid.T) {
					time.Sleep(time.Duration(rapid.IntRange(1, 7000).Draw(rt, "ms")) * time.Millisecond)
				},
				"fault":   m.fault,
				"restart": func(rt *rapid.T) { m.restart() },
				"":        m.check,
			})
			m.finishAll(rt)
		})
	})
}

func (m *model) watch(st *stage) {
	st.actor.notStarted = func(job.Job) bool { return m.giveBack.Load() }
}

func (m *model) submitAny(rt *rapid.T) {
	uid := rapid.SampledFrom([]uint32{alice, bob, carol}).Draw(rt, "uid")
	r := request(cpus(rapid.SampledFrom([]int64{10, 1000, 3000, 8000}).Draw(rt, "cpus")),
		memoryOf(rapid.SampledFrom([]int64{64 * mib, gib, 3 * gib, 8 * gib}).Draw(rt, "memory")), priority(rapid.IntRange(0, 9).Draw(rt, "priority")))
	j, _, err := m.Submit(context.Background(), user(uid), r)
	if err == nil {
		m.ids = append(m.ids, j.ID)
	} else if !errors.Is(err, errDisk) {
		rt.Fatal(err)
	}
}

func (m *model) any(rt *rapid.T) job.ID {
	if len(m.ids) == 0 {
		rt.Skip("no job yet")
	}
	return rapid.SampledFrom(m.ids).Draw(rt, "job")
}

func (m *model) endAny(rt *rapid.T) { m.actor.end(m.any(rt)) }

func (m *model) cancelAny(rt *rapid.T) {
	_, err := m.Cancel(context.Background(), user(alice), m.any(rt), rapid.Bool().Draw(rt, "kill"), job.ReasonByCaller)
	if err != nil && !errors.Is(err, errDisk) {
		rt.Fatal(err)
	}
}

// fault makes a step fail the next few times; the end of a job in a way that is worth another try.
func (m *model) fault(rt *rapid.T) {
	step := rapid.SampledFrom([]string{"admit", "claim", "move", "cancel", "job", "journal", "finish"}).Draw(rt, "step")
	hook := &m.ledger.before
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	if step == "claim" && rapid.Bool().Draw(rt, "after it was committed") {
		hook = &m.ledger.after
	}
	times := rapid.IntRange(1, 3).Draw(rt, "times")
	var err error = errDisk
	if step == "finish" {
		err = job.Wrap(job.CodeUnavailable, errDisk, "full")
	}
	*hook = func(s string, _ job.ID) error {
		m.ledger.mu.Lock()
		defer m.ledger.mu.Unlock()
		if s == step && times > 0 {
			times--
			return err
		}
		return nil
	}
}

func (m *model) mend() {
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	m.ledger.before, m.ledger.after = nil, nil
}

func (m *model) restart() {
	m.settle()
	m.close()
	m.mend()
	m.epoch++
	away := m.away.Load()
	m.stage = open(m.t, tight, m.ledger, m.epoch, m.watch)
	m.away.Store(away)
	m.settle()
}

func (m *model) check(rt *rapid.T) {
	m.settle()
	m.actor.mu.Lock()
	broken := m.actor.broken
	m.actor.mu.Unlock()
	if len(broken) > 0 {
		rt.Fatal(broken)
	}
	if m.Running() < m.actor.running() || m.Running() > tight.MaxRunning {
		rt.Fatalf("%d hold a place, %d run", m.Running(), m.actor.running())
	}
	for _, j := range m.ledger.all() {
		switch {
		case m.actor.runs(j.ID) && j.State == job.Queued:
			rt.Fatalf("%s runs and is queued", j.ID)
		case j.State == job.Running && !m.actor.runs(j.ID):
			rt.Fatalf("%s is running and nobody runs it", j.ID)
		case m.ledger.ended(j.ID) > 1:
			rt.Fatalf("%s ended %d times", j.ID, m.ledger.ended(j.ID))
		}
	}
}

// finishAll mends everything and lets all jobs end.
func (m *model) finishAll(rt *rapid.T) {
	m.settle()
	m.mend()
	m.giveBack.Store(false)
	m.away.Store(false)
	for range 3 * (len(m.ids) + 2) {
		time.Sleep(8 * time.Second)
		m.check(rt)
		for _, id := range m.ids {
			m.actor.end(id)
		}
		m.settle()
	}
	for _, id := range m.ids {
		if j := m.job(id); j.State != job.Done || !m.told(id) || m.ledger.ended(id) != 1 {
			rt.Fatalf("%s is %s, waiters told %v, ended %d times", id, j.State, m.told(id), m.ledger.ended(id))
		}
	}
	if m.Queued() != 0 || m.Running() != 0 {
		rt.Fatalf("%d queued, %d running", m.Queued(), m.Running())
	}
}
