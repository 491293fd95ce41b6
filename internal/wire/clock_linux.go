package wire

import "golang.org/x/sys/unix"

// Boottime is CLOCK_BOOTTIME in nanoseconds: it goes on through a suspended host and is the same in every container.
func Boottime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // cannot happen on a kernel that runs containers
	}
	return ts.Nano()
}
