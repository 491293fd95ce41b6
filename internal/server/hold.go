package server

import (
	"context"
	"time"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// lease is GET /v1/jobs/{ref}/lease.
func (s *Server) lease(x *exchange) error {
	wait, err := x.query.flag("wait")
	if err != nil {
		return err
	}
	j, err := s.job(x)
	if err != nil {
		return err
	}
	if err := x.notItself(j, "a job cannot hold its own lease"); err != nil {
		return err
	}
	if !j.Spec.Lease {
		return job.Errorf(job.CodeConflict, "ref", "the job was submitted without lease, so it does not depend on a connection")
	}
	defer s.leases.Hold(j.ID)()
	held := x.ctx
	if wait {
		// Where the wait is denied the lease ends, and with it the child: that is what lets others go on.
		blocked, release := s.blocks(x.ctx, x, j)
		defer release()
		if err := denied(blocked); err != nil {
			return err
		}
		held = blocked
	}
	x.begin(api.LeaseType, s.cfg.WriteTimeout)
	ctx, stop := s.untilDone(held, j)
	defer stop()
	beat := time.NewTicker(s.cfg.LeaseBeat)
	defer beat.Stop()
	for {
		if _, err := x.w.Write([]byte("\n")); err != nil {
			return nil // the client has gone, and the grace begins
		}
		x.w.flush()
		select {
		case <-beat.C:
		case <-ctx.Done():
			if context.Cause(ctx) == error(errEnded) {
				s.leases.Forget(j.ID)
			}
			return nil
		}
	}
}

// daemonCaller ends jobs on behalf of the daemon itself.
var daemonCaller = job.Caller{Principal: "daemon", Admin: true}

// loseTime bounds one attempt to end a job whose lease was lost.
const loseTime = 30 * time.Second

// endLease cancels a job that nobody holds any more.
func (s *Server) endLease(ctx context.Context, id job.ID) (settled bool) {
	ctx, cancel := context.WithTimeout(ctx, loseTime)
	defer cancel()
	j, err := s.cfg.Records.Job(ctx, id)
	if err == nil && j.State != job.Done {
		s.cfg.Log.Info().Str(keyJob, string(id)).Str(keyRoot, string(j.Root)).Msg("lease lost")
		_, err = s.cfg.Jobs.Cancel(ctx, daemonCaller, id, false, job.ReasonLeaseLost)
	}
	if err == nil || job.CodeOf(err) == job.CodeNotFound {
		return true
	}
	s.cfg.Log.Warn().Err(err).Str(keyJob, string(id)).Msg("a job whose lease is lost could not be cancelled; trying again")
	return false
}

// resumeLeases watches the leased jobs of this node that were not done when the daemon started.
func (s *Server) resumeLeases() error {
	ctx := s.closing
	live, err := s.cfg.Records.Unfinished(ctx, s.cfg.Node)
	if err != nil {
		return job.Wrap(job.CodeOf(err), err, "reading unfinished jobs for their leases")
	}
	queued, err := s.cfg.Records.Queued(ctx)
	if err != nil {
		return job.Wrap(job.CodeOf(err), err, "reading the queue for its leases")
	}
	for _, item := range queued {
		j, err := s.cfg.Records.Job(ctx, item.ID)
		if err != nil {
			return job.Wrap(job.CodeOf(err), err, "reading queued job %s for its lease", item.ID)
		}
		live = append(live, j)
	}
	for _, j := range live {
		if j.Spec.Lease && j.State != job.Done {
			s.leases.Watch(j.ID)
		}
	}
	return nil
}
