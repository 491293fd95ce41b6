package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"sandboxd/internal/admission"
	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	mib  = 1 << 20
	gib  = 1 << 30
	node = "local"

	alice, bob, carol = uint32(1000), uint32(1001), uint32(1002)
)

// roomy is a capacity that bounds nothing by cpu or memory.
var roomy = scheduler.Capacity{MaxRunning: 4, MaxRunningPerUID: 2, MilliCPUs: 1 << 40, Memory: 1 << 50}

// host answers all that admission asks.
type host struct{}

func (host) Resolve(context.Context, string) (string, error) { return "sha256:1", nil }
func (host) Check(_ context.Context, _ job.Caller, path string) (string, bool, error) {
	return path, true, nil
}
func (host) FreeDisk() (int64, error) { return 1 << 50, nil }

func checker(c scheduler.Capacity) *admission.Checker {
	small := envelope.Posture{Runtime: "runc", MilliCPUs: 1000, Memory: gib, Pids: 9, Nofile: 99, TmpBytes: mib, HomeBytes: mib, OutBytes: mib,
		Inodes: 9, OutputKeep: mib, TimeoutMS: 60_000}
	large := small
	large.MilliCPUs, large.Memory = 1<<40, 1<<49
	return admission.New(admission.Rules{
		Profiles: []envelope.Profile{{Name: "default", Default: small, Limit: large, Allows: envelope.Bounds{
			Mode: envelope.SingleTurn, Image: "i", Images: []string{"i"}, Budget: map[budget.Dim]int64{}, BudgetInherit: envelope.BudgetShare,
			MaxDepth: 2, MaxTreeJobs: 64, MaxTreeLive: 8, Detached: true,
		}}},
		MilliCPUs: c.MilliCPUs, Memory: c.Memory, MinFreeDisk: 1, MaxQueued: 20_000, MaxQueuedPer: 20_000,
	}, host{}, host{}, host{})
}

// stage is a scheduler with a ledger in memory and an actor.
type stage struct {
	*scheduler.Scheduler
	t      *testing.T
	ledger *memory
	actor  *actor
	away   atomic.Bool // the engine
}

// play runs a test in a bubble of its own, on a stage that is closed when it is over.
func play(t *testing.T, c scheduler.Capacity, do func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		st := open(t, c, newMemory(), 1)
		do(st)
		st.close()
	})
}

func open(t *testing.T, c scheduler.Capacity, m *memory, epoch int64, prepare ...func(*stage)) *stage {
	t.Helper()
	st := &stage{t: t, ledger: m, actor: newActor(c)}
	st.Scheduler = scheduler.New(scheduler.Options{Ledger: m, Node: m, Checker: checker(c), Capacity: c, NodeName: node, Log: zerolog.Nop(),
		EngineUp: func() bool { return !st.away.Load() }})
	st.actor.s = st.Scheduler
	for _, p := range prepare {
		p(st)
	}
	if err := st.Open(context.Background(), st.actor, epoch); err != nil {
		t.Fatal(err)
	}
	return st
}

// close stops the daemon, which leaves the jobs, and looks at the bounds.
func (st *stage) close() {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := st.Close(ctx); err != nil {
		st.t.Error(err)
	}
	for _, b := range st.actor.broken {
		st.t.Error(b)
	}
	for id, n := range st.ledger.ends {
		if n > 1 {
			st.t.Errorf("%s ended %d times", id, n)
		}
	}
}

func user(uid uint32) job.Caller { return job.HostCaller(uid, uid, nil, 1, false) }

type change func(*admission.Request)

func cpus(milli int64) change { return func(r *admission.Request) { r.Limits.MilliCPUs = &milli } }
func memoryOf(n int64) change { return func(r *admission.Request) { r.Limits.Memory = &n } }
func priority(p int) change   { return func(r *admission.Request) { r.Priority = &p } }
func key(k, body string) change {
	return func(r *admission.Request) { r.IdempotencyKey, r.BodyHash = k, body }
}

func request(changes ...change) admission.Request {
	r := admission.Request{Command: []string{"true"}}
	for _, c := range changes {
		c(&r)
	}
	return r
}

func (st *stage) submit(uid uint32, changes ...change) job.ID {
	st.t.Helper()
	j, created, err := st.Submit(context.Background(), user(uid), request(changes...))
	if err != nil || !created || j.State != job.Queued {
		st.t.Fatalf("%+v, %v, %v", j, created, err)
	}
	return j.ID
}

// settle lets everything happen that can happen now.
func (st *stage) settle() { synctest.Wait() }

func (st *stage) cancel(id job.ID, kill bool) job.Job {
	st.t.Helper()
	j, err := st.Cancel(context.Background(), user(alice), id, kill, job.ReasonByCaller)
	if err != nil {
		st.t.Error(err)
	}
	return j
}

func (st *stage) job(id job.ID) job.Job {
	st.ledger.mu.Lock()
	defer st.ledger.mu.Unlock()
	return st.ledger.jobs[id]
}

// wants fails the test unless the job stands in the state, and is waited for exactly as long as it is not done.
func (st *stage) wants(id job.ID, state job.State) {
	st.t.Helper()
	j := st.job(id)
	if j.State != state {
		st.t.Errorf("%s is %s, want %s", id, j.State, state)
	}
	if st.told(id) != (state == job.Done) {
		st.t.Errorf("%s is %s, its waiters were told so: %v", id, j.State, st.told(id))
	}
	if at := st.Position(id); (at > 0) != (state == job.Queued) {
		st.t.Errorf("%s is %s at position %d", id, j.State, at)
	}
}

func (st *stage) told(id job.ID) bool {
	select {
	case <-st.Done(id):
		return true
	default:
		return false
	}
}

func (st *stage) outcome(id job.ID, status job.Status) {
	st.t.Helper()
	if o := st.job(id).Outcome; o == nil || o.Status != status {
		st.t.Errorf("%s ended as %+v, want %s", id, o, status)
	}
}
