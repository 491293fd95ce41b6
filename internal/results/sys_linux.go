package results

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pwritev writes all of bufs at off, in one call unless the system stops short. n is what was written.
func pwritev(f *os.File, bufs [][]byte, off int64) (n int, err error) {
	fd := int(f.Fd())
	for len(bufs) > 0 {
		k, err := unix.Pwritev(fd, bufs, off+int64(n))
		if err == nil && k == 0 {
			err = syscall.EIO // never for a regular file; a loop without progress would be worse
		}
		if err != nil {
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			return n, os.NewSyscallError("pwritev", err)
		}
		n += k
		bufs = rest(bufs, k)
	}
	return n, nil
}

// rest drops the first n bytes of bufs.
func rest(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs = bufs[1:]
	}
	if n > 0 {
		bufs[0] = bufs[0][n:]
	}
	return bufs
}

// startWriteback asks the kernel to begin writing a range to the disk, so that the fsync at the end has little to do.
// Only a hint: its failure says nothing.
func startWriteback(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}

const nofollow = unix.O_NOFOLLOW
