package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"sandboxd/internal/job"
)

// JobListenConfig says where the socket of a job is and who asks on it.
type JobListenConfig struct {
	Path   string     // absolute, in the slot's directory, which stands with its owner and mode
	GID    uint32     // of the slot: its processes may connect, and root
	UID    *uint32    // every peer must have it, by the kernel's word; nil where a runtime hides it
	Caller job.Caller // of every request; job.JobCaller makes it
	Log    zerolog.Logger
}

func (c *JobListenConfig) check() error {
	switch {
	case !filepath.IsAbs(c.Path) || filepath.Clean(c.Path) != c.Path || c.Path == "/":
		return fmt.Errorf("server: %q is not a clean absolute path for the socket of a job", c.Path)
	case c.Caller.Job == "" || c.Caller.Principal != "job:"+string(c.Caller.Job) || c.Caller.Admin:
		return fmt.Errorf("server: %q is not the caller of a job", c.Caller.Principal)
	}
	return nil
}

// Connections of one job that are taken in a second, after a first burst. Those beyond wait in the kernel, which holds
// up nobody but the job.
const (
	jobConnRate  = 200
	jobConnBurst = 64
)

// JobSocket is the socket inside one job. Whoever connects is that job; nothing that is sent says otherwise.
type JobSocket struct {
	bound
	cfg   JobListenConfig
	meter *meter
	pace  *rate.Limiter
	ctx   context.Context // ends at Close
	stop  context.CancelFunc

	mu    sync.Mutex
	ended bool
	open  map[*jobConn]struct{}
}

// ListenJob makes the socket of a job, in the place of one that an earlier daemon left there. Serve it with
// Server.Serve. The directory must be one that only we can change.
func ListenJob(cfg JobListenConfig) (*JobSocket, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	dir, err := openDirOf(cfg.Path)
	if err != nil {
		return nil, err
	}
	s := &JobSocket{bound: bound{path: cfg.Path, dir: dir}, cfg: cfg, meter: newMeter(), open: map[*jobConn]struct{}{}}
	s.pace = rate.NewLimiter(jobConnRate, jobConnBurst)
	s.ctx, s.stop = context.WithCancel(context.Background())
	_, err = dir.holdsSocket(cfg.Path)
	if err == nil {
		err = s.publish(&cfg.GID, defaultMode, true)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Accept returns the next connection; it implements Caller.
func (s *JobSocket) Accept() (net.Conn, error) {
	for {
		if err := s.pace.Wait(s.ctx); err != nil {
			return nil, net.ErrClosed
		}
		raw, err := s.listener.AcceptUnix()
		if err != nil {
			return nil, err
		}
		c := &jobConn{UnixConn: raw, socket: s, caller: s.cfg.Caller}
		if err := s.admit(c); err != nil {
			_ = raw.Close() // it was never used
			if s.ctx.Err() != nil {
				return nil, net.ErrClosed
			}
			s.cfg.Log.Warn().Err(err).Str(keyJob, string(s.cfg.Caller.Job)).Msg("a connection was turned away")
			continue
		}
		return c, nil
	}
}

// admit looks at the peer and keeps the connection until one of both sides closes it.
func (s *JobSocket) admit(c *jobConn) error {
	cred, _, err := peerCredentials(c.UnixConn)
	switch {
	case err != nil && s.cfg.UID != nil:
		return fmt.Errorf("asking the kernel for the peer: %w", err)
	case err == nil && s.cfg.UID != nil && cred.Uid != *s.cfg.UID:
		return fmt.Errorf("the peer has uid %d, the job has %d", cred.Uid, *s.cfg.UID)
	case err == nil:
		c.caller.PID = cred.Pid
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return net.ErrClosed
	}
	s.open[c] = struct{}{}
	return nil
}

// Close ends the listener, removes the socket's file if it is still ours, and cuts the connections off: the job is
// over, or the daemon.
func (s *JobSocket) Close() error {
	err := s.hush()
	s.mu.Lock()
	s.ended = true
	var open []*jobConn
	for c := range s.open {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		_ = c.Close() // nobody is left to be told
	}
	return err
}

// hush takes no more connections and removes the socket's file.
func (s *JobSocket) hush() error {
	s.stop()
	return s.bound.Close()
}

// jobConn is a connection from inside a job.
type jobConn struct {
	*net.UnixConn
	socket *JobSocket
	caller job.Caller
}

func (c *jobConn) Caller() job.Caller { return c.caller }

// requests is the meter of all connections of the job.
func (c *jobConn) requests() *meter { return c.socket.meter }

func (c *jobConn) Close() error {
	c.socket.mu.Lock()
	delete(c.socket.open, c)
	c.socket.mu.Unlock()
	return c.UnixConn.Close()
}
