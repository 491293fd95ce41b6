package supervise

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// memoryLimit is for the Go heap of init: with the ring, stdin and the kernel's pipe and socket buffers it stays below
// the 24 MiB that a container has for init.
const memoryLimit = 14 << 20

// Conceal makes this process non-dumpable: no process of the same uid can read its memory, its descriptors or its
// environment, or trace it. It comes before anything else.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("PR_SET_DUMPABLE: %w", err)
	}
	return nil
}

// IgnoreSignals catches every signal that can be caught and does nothing about it: anything in the container may send
// one, and the daemon uses frames. Caught, not ignored, so that exec sets them back to their default for the command,
// and so that the kernel keeps the status of children. CHLD is harmless as it is, and comes too often to look at.
func IgnoreSignals() {
	var all []os.Signal
	for n := syscall.Signal(1); n <= lastSignal; n++ {
		if n != syscall.SIGCHLD {
			all = append(all, n)
		}
	}
	signal.Notify(make(chan os.Signal, 1), all...)
}

const lastSignal = 64

// Shrink keeps the runtime small.
func Shrink() {
	debug.SetGCPercent(25)
	debug.SetMemoryLimit(memoryLimit)
	runtime.GOMAXPROCS(2)
}
