package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// connect takes the first connection on the slot's socket, which is init's or the gate fails, and hears that the stub
// waits.
func (f *filling) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.s.cfg.StartTimeout, ErrInitTimeout)
	defer cancel()
	nc, err := accept(ctx, f.listener, f.init)
	if err != nil {
		return err
	}
	f.conn = wire.NewConn(nc, wire.SideDaemon)
	if err := closeListener(f.listener, f.rec.Dir); err != nil {
		return err
	}
	if err := f.refuse(peerFindings(nc, f.init, f.rec.UID)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = f.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := f.handshake(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		} else if !f.init.alive() {
			err = fmt.Errorf("%w: %w", ErrInitDied, err)
		}
		return fmt.Errorf("init's handshake: %w", err)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return f.conn.SetDeadline(time.Time{})
}

func (f *filling) handshake() error {
	if err := wire.AcceptFresh(f.conn, f.id); err != nil {
		return err
	}
	frame, err := f.conn.Next()
	if err != nil {
		return err
	}
	f.readyMsg, err = wire.Decode[wire.Ready](frame)
	return err
}

// acceptPatience is how long one wait for a connection lasts before the peer's life is looked at.
const acceptPatience = 100 * time.Millisecond

// accept waits for a connection until ctx ends or init does.
func accept(ctx context.Context, ln *net.UnixListener, init *process) (*net.UnixConn, error) {
	for {
		if err := ln.SetDeadline(time.Now().Add(acceptPatience)); err != nil {
			return nil, err
		}
		nc, err := ln.AcceptUnix()
		switch {
		case err == nil:
			return nc, nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fmt.Errorf("the slot's socket: %w", err)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !init.alive():
			return nil, ErrInitDied
		}
	}
}

// peerFindings: the peer must be the container's init, by the kernel's word.
func peerFindings(nc *net.UnixConn, init *process, uid uint32) []string {
	raw, err := nc.SyscallConn()
	if err != nil {
		return []string{"peer: " + err.Error()}
	}
	var cred *unix.Ucred
	pidfd := -1
	var credErr, fdErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		pidfd, fdErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, soPeerPidfd)
	})
	if err = errors.Join(err, credErr); err != nil {
		return []string{"peer: " + err.Error()}
	}
	var out []string
	if int(cred.Pid) != init.pid || cred.Uid != uid || cred.Gid != uid {
		out = append(out, fmt.Sprintf("peer of the slot's socket: pid %d uid %d gid %d, want init: pid %d uid %d gid %d",
			cred.Pid, cred.Uid, cred.Gid, init.pid, uid, uid))
	}
	if fdErr == nil { // kernel 6.5; before it the pid alone must do, and init is held by a descriptor from before
		same, err := sameProcess(pidfd, init.fd)
		_ = unix.Close(pidfd)
		if err != nil || !same {
			out = append(out, fmt.Sprintf("peer of the slot's socket is not the process the engine named (%v)", err))
		}
	}
	return out
}

const soPeerPidfd = 0x4d // SO_PEERPIDFD

// sameProcess compares two pidfds by the pid each stands for; -1 is one that has ended.
func sameProcess(a, b int) (bool, error) {
	var pids [2]string
	for i, fd := range []int{a, b} {
		text, err := readFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
		if err != nil {
			return false, err
		}
		s, err := parseStatus(text + "\n")
		if err != nil {
			return false, err
		}
		pids[i] = s["Pid"]
	}
	return pids[0] == pids[1] && pids[0] != "-1" && pids[0] != "", nil
}
