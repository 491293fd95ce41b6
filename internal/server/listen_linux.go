package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"

	"github.com/rs/zerolog"

	"sandboxd/internal/job"
)

// ListenConfig says where the host socket is and who may connect.
type ListenConfig struct {
	Path     string      // absolute, at most 107 bytes
	GID      *uint32     // group of the socket; nil leaves the daemon's own
	Mode     fs.FileMode // of the socket, permission bits only; 0 means 0660
	AdminGID *uint32     // members see and cancel everybody's jobs; nil: only uid 0 does
	Log      zerolog.Logger
}

const (
	maxSocketPath = 107 // what fits sockaddr_un with its NUL
	defaultMode   = 0o660
)

func (c *ListenConfig) check() error {
	switch {
	case !filepath.IsAbs(c.Path) || filepath.Clean(c.Path) != c.Path || c.Path == "/":
		return job.Errorf(job.CodeInvalid, "socket", "%q is not a clean absolute path", c.Path)
	case len(c.Path) > maxSocketPath:
		return job.Errorf(job.CodeInvalid, "socket", "%q has %d bytes; a socket's path has at most %d", c.Path, len(c.Path), maxSocketPath)
	case c.Mode&^fs.ModePerm != 0:
		return job.Errorf(job.CodeInvalid, "socket mode", "%v has more than permission bits", c.Mode)
	}
	if c.Mode == 0 {
		c.Mode = defaultMode
	}
	return nil
}

// Socket is the host socket. Its connections know their caller by what the kernel says of the peer.
type Socket struct {
	bound
	cfg ListenConfig
}

// Listen makes the host socket. A socket somebody answers on, and a file that is no socket, stay; a socket left by a
// daemon that died is replaced. The lock file beside the socket keeps a second daemon off.
func Listen(cfg ListenConfig) (*Socket, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	dir, err := openSocketDir(cfg.Path)
	if err != nil {
		return nil, err
	}
	s := &Socket{bound: bound{path: cfg.Path, dir: dir}, cfg: cfg}
	stale, err := dir.checkPlace(cfg.Path)
	if err == nil {
		err = s.publish(cfg.GID, cfg.Mode, stale)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Accept returns the next connection; it implements Caller. A peer the kernel cannot name is turned away.
func (s *Socket) Accept() (net.Conn, error) {
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			return nil, err
		}
		caller, err := s.peer(c)
		if err == nil {
			return &peerConn{UnixConn: c, caller: caller}, nil
		}
		s.cfg.Log.Warn().Err(err).Msg("a connection was turned away")
		_ = c.Close() // it was never used
	}
}

// peerConn is a connection with its caller.
type peerConn struct {
	*net.UnixConn
	caller job.Caller
}

func (c *peerConn) Caller() job.Caller { return c.caller }

func (s *Socket) peer(c *net.UnixConn) (job.Caller, error) {
	cred, groups, err := peerCredentials(c)
	if err != nil {
		return job.Caller{}, fmt.Errorf("asking the kernel for the peer: %w", err)
	}
	admin := cred.Uid == 0
	if g := s.cfg.AdminGID; g != nil {
		admin = admin || cred.Gid == *g || slices.Contains(groups, *g)
	}
	return job.HostCaller(cred.Uid, cred.Gid, groups, cred.Pid, admin), nil
}
