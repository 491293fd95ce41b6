package supervise

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// alarm rings at a time of CLOCK_BOOTTIME, which goes on while the host sleeps; Go's timers do not.
type alarm struct {
	C chan struct{} // cap 1

	fd   int
	file *os.File
	wait sync.WaitGroup
	at   int64
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	a := &alarm{C: make(chan struct{}, 1), fd: fd, file: os.NewFile(uintptr(fd), "timerfd"), at: never}
	a.wait.Go(func() {
		var count [8]byte
		for {
			if _, err := a.file.Read(count[:]); err != nil {
				return
			}
			select {
			case a.C <- struct{}{}:
			default:
			}
		}
	})
	return a, nil
}

// set makes it ring at the time and at no other. A ring for an earlier setting may still be under way.
func (a *alarm) set(at int64) error {
	if at == a.at {
		return nil
	}
	a.at = at
	var spec unix.ItimerSpec // zero disarms
	if at != never {
		spec.Value = unix.NsecToTimespec(max(at, 1))
	}
	return unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
}

func (a *alarm) close() {
	_ = a.file.Close()
	a.wait.Wait()
}
