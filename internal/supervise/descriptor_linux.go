package supervise

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// descriptor is blocking I/O on a descriptor without the runtime's poller, whose own descriptors the stub does without.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), p)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (d descriptor) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.Write(int(d), p[done:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return done, err
		default:
			done += n
		}
	}
	return done, nil
}

func (d descriptor) Close() error { return unix.Close(int(d)) }
