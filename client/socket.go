package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sandboxd/api"
)

const hintNoDaemon = "start it with 'sandboxd' or 'make run', or set " + SocketEnv + " if it listens elsewhere"

// doorAway is how long a job waits for its socket to be answered again: a daemon that starts anew opens the sockets of
// the jobs it finds one by one.
const (
	doorAway = 10 * time.Second
	doorLook = 100 * time.Millisecond
)

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	inJob := os.Getenv(JobEnv) != "" && c.socket != DefaultSocket
	for deadline := time.Now().Add(doorAway); ; {
		conn, err := d.DialContext(ctx, "unix", c.socket)
		gone := errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
		if err == nil || !inJob || !gone || time.Now().After(deadline) {
			return conn, err
		}
		select {
		case <-time.After(doorLook):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// JobEnv names the environment variable by which a command knows that it runs in a job.
const JobEnv = "SANDBOXD_JOB"

// noDoor is the refusal of a job that was given no socket, nil elsewhere: no daemon can be asked, and none would allow
// more.
func (c *Client) noDoor(err error) error {
	if c.socket != DefaultSocket || os.Getenv(JobEnv) == "" || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &Error{api.Problem{Title: "Forbidden", Status: http.StatusForbidden, Code: "forbidden",
		Detail: "this job may not delegate: its profile names none for children, or it is as deep as its tree may be",
		Hint:   "do the work in this job, or let the operator extend delegates or max_depth", ExitCode: 120}}
}

// socketError sorts a failed exchange: whether a connection was made at all, and what stopped it.
func (c *Client) socketError(err error) *SocketError {
	e := &SocketError{Socket: c.socket, Err: err}
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	switch {
	case errors.Is(err, fs.ErrPermission):
		e.Kind = ErrPermission
		e.Detail, e.Hint = explainPermission(c.socket)
	case dialing && errors.Is(err, syscall.EINVAL):
		e.Kind = ErrNoDaemon
		e.Detail = fmt.Sprintf("%.40q… is %d bytes long; a socket path has at most 107", c.socket, len(c.socket))
		e.Hint = "set " + SocketEnv + " to a shorter path"
	case dialing && errors.Is(err, fs.ErrNotExist):
		e.Kind = ErrNoDaemon
		e.Detail = fmt.Sprintf("the daemon is not running: there is no socket %q", c.socket)
		e.Hint = hintNoDaemon
	case dialing:
		e.Kind = ErrNoDaemon
		e.Detail = fmt.Sprintf("the daemon is not running: nothing listens on %q", c.socket)
		e.Hint = hintNoDaemon
	default:
		e.Kind = ErrLost
		e.Detail = fmt.Sprintf("the connection to the daemon on %q was lost", c.socket)
		e.Hint = "see 'sbx daemon status'; 'sbx ps -a' shows what became of your jobs"
	}
	return e
}

// cut reports whether err says that the other side closed the connection.
func cut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// explainPermission says who may use the socket, or which folder bars the way to it.
func explainPermission(socket string) (detail, hint string) {
	for dir := socket; ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		if errors.Is(err, fs.ErrPermission) && dir != filepath.Dir(dir) {
			continue
		}
		if err != nil {
			return fmt.Sprintf("you may not open %q", socket), "ask the operator of the daemon"
		}
		gid, group := groupOf(st)
		detail = fmt.Sprintf("you may not open %q: %s has mode %#o and group %s", socket, dir, st.Mode().Perm(), group)
		if gid == 0 || st.Mode().Perm()&0o070 == 0 { // nobody should join root's group for this
			return detail, "the operator lets a group in with 'group' under [socket] of the daemon's configuration"
		}
		return detail, fmt.Sprintf("join the group with 'sudo usermod -aG %s %s' and log in again", group, userName())
	}
}

func groupOf(st fs.FileInfo) (gid uint32, name string) {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, "?"
	}
	number := strconv.FormatUint(uint64(sys.Gid), 10)
	if g, err := user.LookupGroupId(number); err == nil {
		return sys.Gid, g.Name
	}
	return sys.Gid, number
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "$USER"
}
