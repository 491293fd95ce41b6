package server

import (
	"strconv"

	"sandboxd/internal/job"
)

// connsOneJob is how many connections one job may have open.
const connsOneJob = 16

// place is one bound that a connection counts against.
type place struct {
	key   string
	limit int
	full  func(limit int) error
}

// places are the bounds for a caller. Jobs have their own, so that they cannot lock out the host's users, and among
// them each owner has its share.
func (g *gate) places(c job.Caller) []place {
	if c.Job != "" {
		return []place{
			{c.Principal, connsOneJob, fullJob},
			{"*jobs of " + strconv.FormatUint(uint64(c.UID), 10), max(connsOneJob, g.maxJobs/2), fullJobs},
			{"*jobs", g.maxJobs, fullJobs},
		}
	}
	all := g.max
	if c.Admin {
		all += adminReserve
	}
	return []place{{c.Principal, g.maxOne, fullUser}, {"*host", all, func(int) error { return fullHost(g.max) }}}
}

func fullJob(limit int) error {
	return tooMany("this job has %d connections open, as many as one may", limit)
}

func fullJobs(int) error {
	return tooMany("the jobs have as many connections open as the daemon takes")
}

func fullUser(limit int) error {
	return job.Errorf(job.CodeQuota, "", "you have %d connections open, as many as one user may", limit).
		WithHint("close some, or try again in a moment")
}

func fullHost(limit int) error {
	return job.Errorf(job.CodeUnavailable, "", "the daemon has %d connections open, as many as it takes", limit).
		WithHint("try again in a moment")
}
