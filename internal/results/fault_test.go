package results_test

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
)

// A write that fails anywhere leaves nothing of itself: not for readers, not in the file, not after a restart. The same
// bytes can be appended again.
func TestFailedAppendLeavesNothing(t *testing.T) {
	tests := []struct {
		name  string
		keep  int64
		fill  int // bytes appended before
		small bool
		errno error
		want  error
	}{
		{"first record, full disk", 1 << 20, 0, false, syscall.ENOSPC, results.ErrFull},
		{"over quota", 1 << 20, 1000, false, syscall.EDQUOT, results.ErrFull},
		{"broken disk", 1 << 20, 50_000, false, syscall.EIO, results.ErrIO},
		{"joining the record before", 1 << 20, 1000, true, syscall.ENOSPC, results.ErrFull},
		{"ring turned", results.MinKeep, 100_000, false, syscall.EIO, results.ErrIO},
		{"joining in a turned ring", results.MinKeep, 100_000, true, syscall.ENOSPC, results.ErrFull},
	}
	for _, tt := range tests {
		for call := range 4 { // which of the calls of the append fails
			for _, short := range []int{0, 1, 24, 25, 500} {
				t.Run(tt.name, func(t *testing.T) {
					failOnce(t, tt.keep, tt.fill, tt.small, call, short, tt.errno, tt.want)
				})
			}
		}
	}
}

func failOnce(t *testing.T, keep int64, fill int, small bool, call, short int, errno, want error) {
	dir := t.TempDir()
	l := results.New(dir)
	defer l.Close()
	id, w := create(t, l, keep)
	m := &model{}
	for i := 0; i < fill; i += 700 {
		m.write(t, w, results.KindStdout, 1, noise(uint64(i), 700))
	}
	size := fileSize(t, l.Path(id))
	p := noise(7, 5000)
	if small {
		p = p[:300]
	}
	left := call
	l.FailWrites(func() (int, error) {
		left--
		if left == -1 {
			return short, errno
		}
		return 0, nil
	})
	err := w.Append(results.KindStdout, 2, p)
	if left >= 0 {
		must(t, err) // fewer calls than that
		return
	}
	if !errors.Is(err, want) || !errors.Is(err, errno) || job.CodeOf(err) != job.CodeInternal {
		t.Fatalf("call %d: %v, want %v", call, err, want)
	}
	if now := fileSize(t, l.Path(id)); now != size {
		t.Errorf("the file has %d bytes after the failure, %d before", now, size)
	}
	if got := m.check(t, l, id, 0); got.next != uint64(len(m.bytes)) {
		t.Errorf("readers see %d bytes of %d", got.next, len(m.bytes))
	}
	m.write(t, w, results.KindStdout, 3, p)
	m.check(t, l, id, 0)
	w.Crash()
	w, err = l.Reopen(id, results.Options{Keep: keep})
	must(t, err)
	if got := m.check(t, l, id, 0); got.next != uint64(len(m.bytes)) {
		t.Errorf("after a crash readers see %d bytes of %d", got.next, len(m.bytes))
	}
	_, err = w.Close(t.Context())
	must(t, err)
}

func TestCloseReportsAFailedSync(t *testing.T) {
	l := newLogs(t)
	_, w := create(t, l, 1<<20)
	must(t, w.Append(results.KindStdout, 1, []byte("x")))
	l.FailSync(syscall.EIO)
	for range 2 { // the kernel would let the second sync pass
		if _, err := w.Close(t.Context()); !errors.Is(err, results.ErrIO) {
			t.Errorf("%v, want %v", err, results.ErrIO)
		}
		l.FailSync(nil)
	}
}

// On a disk that is really full the stream stays readable and can be ended.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small tmpfs needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no tmpfs here: %v", err)
	}
	defer func() { must(t, unix.Unmount(dir, 0)) }()
	l := results.New(dir)
	defer l.Close()
	id, w := create(t, l, 16<<20)
	m := &model{}
	var err error
	for i := uint64(0); err == nil; i++ {
		p := noise(i, 100_000)
		if err = w.Append(results.KindStdout, 1, p); err == nil {
			m.add(results.KindStdout, p)
		}
	}
	if !errors.Is(err, results.ErrFull) || len(m.bytes) < 500_000 {
		t.Fatalf("%v after %d bytes", err, len(m.bytes))
	}
	info, err := w.Close(t.Context())
	must(t, err)
	if got := m.check(t, l, id, 0); !got.ended || !bytes.Equal(got.kept, m.bytes) || info.Bytes != int64(len(m.bytes)) {
		t.Errorf("ended %t, %d of %d bytes, %+v", got.ended, len(got.kept), len(m.bytes), info)
	}
	if _, err := l.Create(newID(t), results.Options{Keep: 1 << 20}); err != nil && !errors.Is(err, results.ErrFull) {
		t.Errorf("create on a full disk: %v", err)
	}
}
