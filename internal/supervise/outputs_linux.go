package supervise

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// outputs reads the command's stdout and stderr into the ring, in the order in which it finds them readable, until both
// end. When the ring is full it does not read, and the command waits.
type outputs struct {
	ring *ring
	wake int // eventfd

	draining atomic.Bool

	// Of the goroutine that runs it; read by others once it has ended.
	streams  [2]outStream
	cutShort bool
}

type outStream struct {
	number uint8
	fd     int // -1 when it has ended
	sum    wire.StreamSum
}

func newOutputs(r *ring, stdout, stderr int) (*outputs, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	// Not waiting in read: the command can open its own stdout for reading and take what poll saw.
	if err := errors.Join(unix.SetNonblock(stdout, true), unix.SetNonblock(stderr, true)); err != nil {
		return nil, fmt.Errorf("set nonblock: %w", err)
	}
	return &outputs{ring: r, wake: wake, streams: [2]outStream{
		{number: wire.StreamStdout, fd: stdout}, {number: wire.StreamStderr, fd: stderr},
	}}, nil
}

// run holds an OS thread while it waits.
func (o *outputs) run() {
	defer o.close()
	for o.streams[0].fd >= 0 || o.streams[1].fd >= 0 {
		wait := -1
		if o.draining.Load() {
			wait = 0
		}
		fds := [3]unix.PollFd{
			{Fd: int32(o.streams[0].fd), Events: unix.POLLIN},
			{Fd: int32(o.streams[1].fd), Events: unix.POLLIN},
			{Fd: int32(o.wake), Events: unix.POLLIN},
		}
		if wait == 0 {
			fds[2].Fd = -1
		}
		n, err := unix.Poll(fds[:], wait)
		if n == 0 && err == nil {
			o.cutShort = true // all that was written is read, and somebody still holds the pipe
			return
		}
		for i := range o.streams {
			if fds[i].Revents != 0 && !o.read(&o.streams[i]) {
				return
			}
		}
	}
}

// read takes one chunk; false means that the ring is closed.
func (o *outputs) read(s *outStream) bool {
	room := o.ring.reserve()
	if room == nil {
		return false
	}
	chunk := room[wire.HeaderSize:]
	n, err := unix.Read(s.fd, chunk)
	switch {
	case n > 0:
		s.sum.Add(chunk[:n])
		o.ring.commit(s.number, n, wire.Boottime())
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
	default: // the end, or a pipe that cannot be read any more
		o.shut(s)
	}
	return true
}

// drain makes run return as soon as nothing is left to read, whether or not the pipes have ended.
func (o *outputs) drain() {
	o.draining.Store(true)
	_, _ = unix.Write(o.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (o *outputs) shut(s *outStream) {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

func (o *outputs) close() {
	for i := range o.streams {
		o.shut(&o.streams[i])
	}
}
