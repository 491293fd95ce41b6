package server

import (
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"sandboxd/internal/job"
)

// Bounds of one job's requests over all its connections. Requests that go on or wait are bounded apart: a job that
// follows all its children can still ask and cancel.
const (
	jobRate    = 50 // requests a second, and as many at once after a pause
	jobAtOnce  = 8
	jobLasting = connsOneJob - 2
)

// meter bounds the requests of one job. A nil meter bounds nothing: those of the host are bounded by connections.
type meter struct {
	rate          *rate.Limiter
	work, lasting *semaphore.Weighted
}

func newMeter() *meter {
	return &meter{
		rate:    rate.NewLimiter(jobRate, jobRate),
		work:    semaphore.NewWeighted(jobAtOnce),
		lasting: semaphore.NewWeighted(jobLasting),
	}
}

// pass refuses a request that comes too soon after those before it.
func (m *meter) pass() error {
	if m == nil || m.rate.Allow() {
		return nil
	}
	return tooMany("a job may ask %d times a second", jobRate)
}

// begin counts a request in until done is called.
func (m *meter) begin(lasting bool) (done func(), err error) {
	switch {
	case m == nil:
		return func() {}, nil
	case lasting && m.lasting.TryAcquire(1):
		return func() { m.lasting.Release(1) }, nil
	case lasting:
		return nil, tooMany("%d requests of this job wait or follow already, as many as may", jobLasting)
	case m.work.TryAcquire(1):
		return func() { m.work.Release(1) }, nil
	}
	return nil, tooMany("%d requests of this job are being answered, as many as may at once", jobAtOnce)
}

func tooMany(format string, args ...any) error {
	return job.Errorf(job.CodeRateLimit, "", format, args...).WithHint("try again in a second")
}
