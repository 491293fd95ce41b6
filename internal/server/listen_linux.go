package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

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
	cfg      ListenConfig
	listener *net.UnixListener
	dir      *socketDir
	dev, ino uint64 // of the socket's file, to tell our own from another at Close

	once     sync.Once
	closeErr error
}

// Listen makes the host socket. It appears at its path with its owner and mode set: nobody can connect earlier, or
// with other rights. A socket somebody answers on, and a file that is no socket, stay; a socket left by a daemon that
// died is replaced. The lock file beside the socket keeps a second daemon off.
func Listen(cfg ListenConfig) (*Socket, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	dir, err := openSocketDir(cfg.Path)
	if err != nil {
		return nil, err
	}
	s := &Socket{cfg: cfg, dir: dir}
	stale, err := dir.checkPlace(cfg.Path)
	if err == nil {
		err = s.publish(stale)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// publish binds in a private directory, sets owner and mode there, and moves the socket to its place.
func (s *Socket) publish(stale bool) (err error) {
	private, undo, err := s.dir.private()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, undo()) }()
	s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: inDir(private, privateName), Net: "unix"})
	if err != nil {
		return fmt.Errorf("binding %s: %w", s.cfg.Path, err)
	}
	s.listener.SetUnlinkOnClose(false) // Close looks first whose it is
	fd := int(private.Fd())
	if s.cfg.GID != nil {
		if err := unix.Fchownat(fd, privateName, -1, int(*s.cfg.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("giving %s to group %d: %w", s.cfg.Path, *s.cfg.GID, err)
		}
	}
	if err := unix.Fchmodat(fd, privateName, uint32(s.cfg.Mode), 0); err != nil {
		return fmt.Errorf("setting the mode of %s: %w", s.cfg.Path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, privateName, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("looking at %s: %w", s.cfg.Path, err)
	}
	s.dev, s.ino = uint64(st.Dev), st.Ino
	var flags uint
	if !stale { // what appeared meanwhile is not ours to replace
		flags = unix.RENAME_NOREPLACE
	}
	if err := unix.Renameat2(fd, privateName, s.dir.fd(), s.dir.base, flags); err != nil {
		return fmt.Errorf("moving the socket to %s: %w", s.cfg.Path, err)
	}
	return nil
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

// Addr is the socket's path.
func (s *Socket) Addr() net.Addr { return &net.UnixAddr{Name: s.cfg.Path, Net: "unix"} }

// Close ends the listener and removes the socket's file if it is still ours.
func (s *Socket) Close() error {
	s.once.Do(func() {
		if s.listener != nil { // nil where Listen failed before it was made
			s.closeErr = errors.Join(s.listener.Close(), s.dir.remove(s.dev, s.ino))
		}
		s.closeErr = errors.Join(s.closeErr, s.dir.close())
	})
	return s.closeErr
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

// inDir names a file by its open directory: no path is walked again, and the name is short enough for a socket.
func inDir(dir *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
}
