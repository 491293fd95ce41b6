package supervise

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// errNotInit keeps kill(-1) away from every pid namespace but the job's own.
var errNotInit = errors.New("not process 1: sbx-init runs only as the init of a container")

// CheckInit refuses to go on when this process is not PID 1.
func CheckInit() error {
	if os.Getpid() != 1 {
		return errNotInit
	}
	return nil
}

const (
	sweepLeast = 200 * time.Microsecond
	sweepMost  = 50 * time.Millisecond
)

// sweep kills everything in this pid namespace but init, again and again until nothing is left to answer, or until over
// is closed. One round reaches even a fork bomb, because the kernel goes through the list with forks held back; the
// repetition is for what a freezer or an uninterruptible wait holds.
func sweep(over <-chan struct{}) {
	if CheckInit() != nil {
		return
	}
	for pause := sweepLeast; ; pause = min(2*pause, sweepMost) {
		if err := unix.Kill(-1, unix.SIGKILL); errors.Is(err, unix.ESRCH) {
			return
		}
		t := time.NewTimer(pause)
		select {
		case <-over:
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// terminate asks the process group to end; CONT lets a stopped one hear it.
func terminate(group int) {
	signalGroup(group, unix.SIGTERM)
	signalGroup(group, unix.SIGCONT)
}

// signalGroup sends to the command's process group. That it may be gone already is nothing to report.
func signalGroup(group int, sig unix.Signal) {
	if group > 1 {
		_ = unix.Kill(-group, sig)
	}
}
