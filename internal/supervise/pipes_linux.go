package supervise

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// pipeSize is what the command can write ahead of init.
const pipeSize = 1 << 20

// pipe is a pair of descriptors, both closed on exec.
type pipe struct{ r, w int }

func newPipe(size int) (pipe, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return pipe{}, fmt.Errorf("pipe: %w", err)
	}
	for ; size > 64<<10; size /= 2 { // less where the uid's quota or pipe-max-size does not allow it
		if _, err := unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, size); err == nil {
			break
		}
	}
	return pipe{r: fds[0], w: fds[1]}, nil
}

// pipes are all that stands between init and the stub.
type pipes struct {
	stdin, stdout, stderr pipe
	order, status         pipe // the start message to the stub; what the stub has to say
}

func newPipes() (p pipes, err error) {
	for _, one := range []struct {
		p    *pipe
		size int
	}{{&p.stdin, pipeSize}, {&p.stdout, pipeSize}, {&p.stderr, pipeSize}, {&p.order, 0}, {&p.status, 0}} {
		if *one.p, err = newPipe(one.size); err != nil {
			return p, err
		}
	}
	return p, nil
}

// theirs are the stub's ends, in the order of its descriptors.
func (p *pipes) theirs() []int {
	return []int{p.stdin.r, p.stdout.w, p.stderr.w, p.order.r, p.status.w}
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
