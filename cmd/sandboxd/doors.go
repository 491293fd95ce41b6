package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/rs/zerolog"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/runner"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/scheduler"
	"sandboxd/internal/server"
)

// family gives the scheduler's meters the runner's word for them.
type family struct{ *scheduler.Scheduler }

func (f family) Output(j job.Job, used int64) runner.Meter { return f.Scheduler.Output(j, used) }

// doors opens the sockets of jobs that may delegate. Jobs that an earlier daemon left may come before the server is there:
// their connections wait in the kernel.
type doors struct {
	ctx context.Context // of the daemon: a job's own would cut every other socket's requests
	log zerolog.Logger

	mu      sync.Mutex
	srv     *server.Server
	waiting []*server.JobSocket
}

func newDoors(ctx context.Context, log zerolog.Logger) *doors { return &doors{ctx: ctx, log: log} }

// Open implements runner.Doors.
func (d *doors) Open(j job.Job, dir string, gid uint32) (io.Closer, error) {
	var e envelope.Envelope
	if err := json.Unmarshal(j.Envelope, &e); err != nil {
		return nil, fmt.Errorf("the stored envelope of job %s: %w", j.ID, err)
	}
	if len(e.Delegates) == 0 || e.Depth >= e.MaxDepth {
		return nil, nil
	}
	s, err := server.ListenJob(server.JobListenConfig{Path: filepath.Join(dir, sandbox.JobSocketName), GID: gid, UID: &gid, Caller: job.JobCaller(j), Log: d.log})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.srv == nil {
		d.waiting = append(d.waiting, s)
	} else {
		d.answer(d.srv, s)
	}
	return s, nil
}

// serve answers on the sockets that are open already, and on all to come.
func (d *doors) serve(srv *server.Server) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.srv = srv
	for _, s := range d.waiting {
		d.answer(srv, s)
	}
	d.waiting = nil
}

func (d *doors) answer(srv *server.Server, s *server.JobSocket) {
	go func() {
		if err := srv.Serve(d.ctx, s); err != nil && d.ctx.Err() == nil {
			d.log.Warn().Err(err).Msg("a job's socket failed")
		}
	}()
}
