package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/scheduler"
)

// one is a capacity of a single place.
var one = scheduler.Capacity{MaxRunning: 1, MaxRunningPerUID: 1, MilliCPUs: 1 << 40, Memory: 1 << 50}

// drainOrder lets the jobs run one after the other and returns the order they started in.
func drainOrder(st *stage) []job.ID {
	for st.Running() > 0 {
		order := st.actor.started()
		st.actor.end(order[len(order)-1])
		st.settle()
	}
	return st.actor.started()
}

// queued submits while nothing can start, so that only the order decides.
func (st *stage) queued(submit func()) {
	st.away.Store(true)
	submit()
	st.settle()
	st.away.Store(false)
	st.Wake()
	st.settle()
}

func TestOneUsersThousandsDoNotKeepAnotherWaiting(t *testing.T) {
	for name, c := range map[string]scheduler.Capacity{"half of the places": roomy, "a single place": one} {
		t.Run(name, func(t *testing.T) {
			play(t, c, func(st *stage) {
				for range 10_000 {
					st.submit(alice)
				}
				st.settle()
				before := len(st.actor.started())
				id := st.submit(bob)
				st.settle()
				if !st.actor.runs(id) { // no place: the next one is bob's
					st.actor.end(st.actor.started()[0])
					st.settle()
				}
				order := st.actor.started()
				if len(order) != before+1 || order[before] != id {
					t.Errorf("%d jobs started before bob's", len(order)-1-before)
				}
			})
		})
	}
}

func TestUsersTakeTurns(t *testing.T) {
	play(t, one, func(st *stage) {
		var a, b, c []job.ID
		st.queued(func() {
			for range 3 {
				a = append(a, st.submit(alice))
			}
			for range 3 {
				b = append(b, st.submit(bob))
			}
			c = append(c, st.submit(carol))
		})
		want := []job.ID{a[0], b[0], c[0], a[1], b[1], a[2], b[2]}
		if got := drainOrder(st); !slices.Equal(got, want) {
			t.Errorf("%v\nwant %v", got, want)
		}
	})
}

func TestPriorityThenAgeDecideWithinAUser(t *testing.T) {
	play(t, one, func(st *stage) {
		var low, old, young, high job.ID
		st.queued(func() {
			low, old, young, high = st.submit(alice, priority(0)), st.submit(alice), st.submit(alice), st.submit(alice, priority(9))
		})
		if got, want := drainOrder(st), []job.ID{high, old, young, low}; !slices.Equal(got, want) {
			t.Errorf("%v\nwant %v", got, want)
		}
	})
}

// Priority is a matter between a user's own jobs: it buys nothing from others.
func TestPriorityTakesNothingFromOthers(t *testing.T) {
	play(t, one, func(st *stage) {
		var a, b, c job.ID
		st.queued(func() {
			a, b, c = st.submit(alice, priority(9)), st.submit(alice, priority(9)), st.submit(bob, priority(0))
		})
		if got, want := drainOrder(st), []job.ID{a, c, b}; !slices.Equal(got, want) {
			t.Errorf("%v\nwant %v", got, want)
		}
	})
}

func TestNoUserHasMoreThanItsPlaces(t *testing.T) {
	play(t, roomy, func(st *stage) {
		for range 5 {
			st.submit(alice)
		}
		st.settle()
		if st.Running() != 2 {
			t.Errorf("%d of alice's run", st.Running())
		}
		st.submit(bob)
		st.submit(carol)
		st.submit(carol)
		st.settle()
		if st.Running() != 4 || st.actor.peak != 4 {
			t.Errorf("%d run, %d at most", st.Running(), st.actor.peak)
		}
	})
}

// fitting is a capacity of ten cores and ten GiB beside the inits.
var fitting = scheduler.Capacity{MaxRunning: 100, MaxRunningPerUID: 100, MilliCPUs: 10_000, Memory: 10*gib + 240*mib}

func TestCpuAndMemoryBoundWhatRuns(t *testing.T) {
	for name, c := range map[string]struct {
		with change
		run  int
	}{
		"cpu": {cpus(3000), 3}, "exactly all cpu": {cpus(5000), 2}, "memory, inits included": {memoryOf(gib), 10},
		"memory, by one byte": {memoryOf(gib + 1), 9}, "half the memory": {memoryOf(5 * gib), 2},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, fitting, func(st *stage) {
				for range 20 {
					st.submit(alice, cpus(10), memoryOf(64*mib), c.with)
				}
				st.settle()
				if st.Running() != c.run {
					t.Errorf("%d run, want %d", st.Running(), c.run)
				}
				st.actor.end(st.actor.started()[0])
				st.settle()
				if st.Running() != c.run || len(st.actor.started()) != c.run+1 {
					t.Errorf("%d run after one ended", st.Running())
				}
			})
		})
	}
}

func TestASmallJobPassesALargeOneThatDoesNotFit(t *testing.T) {
	play(t, fitting, func(st *stage) {
		st.submit(alice, cpus(6000))
		st.settle()
		large := st.submit(alice, cpus(8000))
		small := st.submit(alice, cpus(1000))
		st.settle()
		if st.actor.runs(large) || !st.actor.runs(small) {
			t.Error("the small one waits for the large one")
		}
	})
}

// churn keeps small jobs coming and ending, but for one that goes on, until the large one runs, and returns how many
// passed it. Two small ones overlap, so there is never room by itself.
func churn(st *stage, keep, large job.ID, begin func(round int) job.ID) int {
	round := 0
	for ; round < 1000 && !st.actor.runs(large); round++ {
		next := begin(round)
		st.settle()
		for _, id := range st.actor.started() {
			if id != next && id != keep && id != large {
				st.actor.end(id)
			}
		}
		st.settle()
	}
	return round
}

func TestALargeJobIsPassedBySoManyAndNoMore(t *testing.T) {
	for name, passing := range map[string]func(st *stage, round int) job.ID{
		"by its own user's": func(st *stage, _ int) job.ID { return st.submit(alice, cpus(1000)) },
		"by another's":      func(st *stage, _ int) job.ID { return st.submit(bob, cpus(1000)) },
		// Each has nothing running, so all of them stand before alice, who has.
		"by a new user's each": func(st *stage, round int) job.ID { return st.submit(5000+uint32(round), cpus(1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, fitting, func(st *stage) {
				keep := st.submit(alice, cpus(1000)) // alice has one running all the time
				st.settle()
				st.submit(bob, cpus(1000))
				st.settle()
				large := st.submit(alice, cpus(9000)) // fits beside that one alone
				st.settle()
				passed := churn(st, keep, large, func(round int) job.ID { return passing(st, round) })
				if passed < 60 || passed > 70 {
					t.Errorf("%d jobs passed it", passed)
				}
			})
		})
	}
}

// Once it is its turn, others that fit into what becomes free do not take it away again.
func TestAStarvingJobGoesFirst(t *testing.T) {
	play(t, scheduler.Capacity{MaxRunning: 100, MaxRunningPerUID: 100, MilliCPUs: 10_000, Memory: 1 << 50}, func(st *stage) {
		blocker := st.submit(bob, cpus(6000))
		st.settle()
		large := st.submit(alice, cpus(5000))
		st.settle()
		for range 64 {
			id := st.submit(bob, cpus(4000))
			st.settle()
			st.actor.end(id)
			st.settle()
		}
		stopped := st.submit(carol, cpus(4000)) // carol has nothing running, and it would fit
		st.settle()
		if st.actor.runs(stopped) || st.actor.runs(large) {
			t.Fatal("the bound does not hold")
		}
		st.actor.end(blocker)
		st.settle()
		if order := st.ledger.claims; !slices.Equal(order[len(order)-2:], []job.ID{large, stopped}) {
			t.Errorf("large %v, other %v", st.actor.runs(large), st.actor.runs(stopped))
		}
	})
}

// A cancel of the job that all wait for lets them go on at once, not after the loop's next look.
func TestCancellingTheStarvingJobFreesTheOthers(t *testing.T) {
	play(t, fitting, func(st *stage) {
		st.submit(bob, cpus(6000))
		st.settle()
		large := st.submit(alice, cpus(5000))
		for range 64 {
			id := st.submit(bob, cpus(1000))
			st.settle()
			st.actor.end(id)
			st.settle()
		}
		small := st.submit(carol, cpus(1000))
		st.settle()
		began := time.Now()
		st.cancel(large, false)
		st.settle()
		if !st.actor.runs(small) || time.Since(began) > 0 {
			t.Errorf("runs: %v, after %s", st.actor.runs(small), time.Since(began))
		}
	})
}
