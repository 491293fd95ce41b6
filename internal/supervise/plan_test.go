package supervise_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sandboxd/internal/supervise"
	"sandboxd/internal/wire"
)

const second = int64(time.Second)

func TestPlanReadsAsTheRulesDo(t *testing.T) {
	type at struct {
		sec  int64
		want supervise.Action
	}
	job := wire.Start{TimeoutMS: 100_000, FinishMS: 15_000, GraceMS: 3000}
	tests := []struct {
		name  string
		do    func(p *supervise.Plan)
		steps []at
		cause string
	}{
		{"nothing before the deadline", func(*supervise.Plan) {}, []at{{0, supervise.ActNone}, {99, supervise.ActNone}}, ""},
		{"deadline: TERM, window, KILL", func(*supervise.Plan) {},
			[]at{{100, supervise.ActTerm}, {101, supervise.ActNone}, {114, supervise.ActNone}, {115, supervise.ActKill}, {200, supervise.ActNone}}, wire.CauseDeadline},
		{"cancel: TERM, grace, KILL", func(p *supervise.Plan) { p.Cancelled(10*second, wire.Cancel{GraceMS: 5000, Cause: wire.CauseCancel}) },
			[]at{{10, supervise.ActTerm}, {14, supervise.ActNone}, {15, supervise.ActKill}, {100, supervise.ActNone}}, wire.CauseCancel},
		{"cancel without grace kills at once", func(p *supervise.Plan) { p.Cancelled(10*second, wire.Cancel{Cause: wire.CauseCancel}) },
			[]at{{10, supervise.ActKill}, {11, supervise.ActNone}}, wire.CauseCancel},
		{"a later cancel only shortens", func(p *supervise.Plan) {
			p.Cancelled(10*second, wire.Cancel{GraceMS: 5000, Cause: wire.CauseCancel})
			p.Cancelled(11*second, wire.Cancel{GraceMS: 60_000, Cause: wire.CauseLease})
		}, []at{{11, supervise.ActTerm}, {15, supervise.ActKill}}, wire.CauseCancel},
		{"a cancel in the finishing window keeps the cause", func(p *supervise.Plan) {
			p.Due(100 * second)
			p.Cancelled(101*second, wire.Cancel{Cause: wire.CauseCancel})
		}, []at{{101, supervise.ActKill}}, wire.CauseDeadline},
		{"the deadline does not prolong a cancel's grace", func(p *supervise.Plan) {
			p.Cancelled(99*second, wire.Cancel{GraceMS: 5000, Cause: wire.CauseCancel})
		}, []at{{99, supervise.ActTerm}, {100, supervise.ActNone}, {104, supervise.ActKill}}, wire.CauseCancel},
		{"a lease that runs out", func(p *supervise.Plan) { p.Renewed(1*second, wire.Lease{RemainingMS: 9000}) },
			[]at{{9, supervise.ActNone}, {10, supervise.ActTerm}, {13, supervise.ActKill}}, wire.CauseLease},
		{"a lease that is renewed", func(p *supervise.Plan) {
			p.Renewed(1*second, wire.Lease{RemainingMS: 9000})
			p.Renewed(9*second, wire.Lease{RemainingMS: 9000})
		}, []at{{17, supervise.ActNone}, {18, supervise.ActTerm}}, wire.CauseLease},
		{"everything late at once", func(*supervise.Plan) {}, []at{{1000, supervise.ActTerm}, {1014, supervise.ActNone}, {1015, supervise.ActKill}}, wire.CauseDeadline},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := supervise.NewPlan()
			p.Started(0, job)
			tt.do(&p)
			for _, s := range tt.steps {
				if got := p.Due(s.sec * second); got != s.want {
					t.Errorf("at %d s: %d, want %d", s.sec, got, s.want)
				}
			}
			if p.Cause() != tt.cause {
				t.Errorf("cause %q", p.Cause())
			}
		})
	}
}

// Whatever is ordered, a job is killed by its deadline and window, once, and a supervisor that sleeps until Wake misses
// nothing.
func TestPlanAlwaysEndsAJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := supervise.NewPlan()
		job := wire.Start{TimeoutMS: rapid.Int64Range(1, 1000).Draw(t, "timeout"), FinishMS: rapid.Int64Range(0, 1000).Draw(t, "finish")}
		p.Started(0, job)
		limit := (job.TimeoutMS + job.FinishMS) * 1e6
		now, terms := int64(0), 0
		for {
			act := p.Due(now)
			if act == supervise.ActKill {
				break
			}
			if act == supervise.ActTerm {
				terms++
				continue
			}
			if p.Wake() == supervise.Never {
				t.Fatal("sleeps for ever")
			}
			if rapid.Bool().Draw(t, "order") {
				p.Cancelled(now, wire.Cancel{GraceMS: rapid.Int64Range(0, 3000).Draw(t, "grace"), Cause: wire.CauseCancel})
				continue
			}
			now = max(now, min(p.Wake(), now+rapid.Int64Range(0, 1e9).Draw(t, "sleep")))
		}
		if now > limit || terms > 1 || p.Due(now+1e12) != supervise.ActNone || p.Cause() == "" {
			t.Fatalf("killed at %d of %d, %d TERM", now, limit, terms)
		}
	})
}
