package callerfs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/callerfs"
)

// Requests of the FUSE protocol that the kernel sends here.
const (
	fuseGetattr = 3
	fuseStatfs  = 17
	fuseInit    = 26
	fuseAccess  = 34
)

// fuse is a file system of one folder that answers only some requests and leaves the others waiting for ever.
type fuse struct {
	fd      int
	dir     string
	answers map[uint32]bool
	stop    sync.Once
	done    chan struct{}

	mu    sync.Mutex
	asked map[uint32]int
}

// mountFuse mounts one at dir. Who waits for it cannot even be killed.
func mountFuse(t *testing.T, dir string, answers ...uint32) *fuse {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)
	if err := unix.Mount("callerfs-test", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = unix.Close(fd)
		t.Skipf("no FUSE mount here: %v", err)
	}
	f := &fuse{fd: fd, dir: dir, answers: map[uint32]bool{fuseInit: true}, done: make(chan struct{}), asked: map[uint32]int{}}
	for _, a := range answers {
		f.answers[a] = true
	}
	go f.serve()
	t.Cleanup(f.end)
	return f
}

// end aborts the connection: all who wait for it get an error.
func (f *fuse) end() {
	f.stop.Do(func() {
		_ = unix.Unmount(f.dir, unix.MNT_FORCE)
		_ = unix.Unmount(f.dir, unix.MNT_DETACH)
		<-f.done
	})
}

func (f *fuse) serve() {
	defer close(f.done)
	defer unix.Close(f.fd)
	buf := make([]byte, 1<<20)
	for {
		n, err := unix.Read(f.fd, buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOENT):
			continue
		case err != nil || n < 40:
			return
		}
		opcode, unique := binary.NativeEndian.Uint32(buf[4:]), binary.NativeEndian.Uint64(buf[8:])
		f.mu.Lock()
		f.asked[opcode]++
		f.mu.Unlock()
		if f.answers[opcode] {
			f.reply(unique, body(opcode))
		}
	}
}

func (f *fuse) count(opcode uint32) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[opcode]
}

func (f *fuse) reply(unique uint64, body []byte) {
	out := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
	out = binary.NativeEndian.AppendUint32(out, 0)
	out = binary.NativeEndian.AppendUint64(out, unique)
	_, _ = unix.Write(f.fd, append(out, body...))
}

func body(opcode uint32) []byte {
	switch opcode {
	case fuseInit:
		b := make([]byte, 64)
		binary.NativeEndian.PutUint32(b, 7)
		binary.NativeEndian.PutUint32(b[4:], 31)
		binary.NativeEndian.PutUint32(b[20:], 1<<16) // the largest write
		return b
	case fuseGetattr:
		b := make([]byte, 104)
		attr := b[16:]
		binary.NativeEndian.PutUint64(attr, 1)                       // inode
		binary.NativeEndian.PutUint32(attr[60:], unix.S_IFDIR|0o755) // mode
		binary.NativeEndian.PutUint32(attr[64:], 2)                  // links
		binary.NativeEndian.PutUint32(attr[68:], alice)              // owner
		return b
	}
	return nil // access
}

// A real file system that never answers: the helper cannot be killed, and nothing else may suffer from it.
func TestAFileSystemThatNeverAnswersStopsNobodyElse(t *testing.T) {
	dir := folder(t, alice)
	hung, fine := mkdir(t, dir+"/hung", alice, 0o755), mkdir(t, dir+"/fine", alice, 0o755)
	theirs := folder(t, bob)
	f := mountFuse(t, hung)
	o := newOpener(t, callerfs.Rules{})
	t.Cleanup(f.end) // before the opener's wait for its helpers

	var all sync.WaitGroup
	began := time.Now()
	for range 5 {
		all.Go(func() { refused(t, o, caller(alice), hung+"/x", "") })
	}
	opens(t, o, caller(bob), theirs)
	if took := time.Since(began); took > time.Second {
		t.Errorf("another user waited %s", took)
	}
	all.Wait()
	if took := time.Since(began); took > callerfs.Deadline+time.Second {
		t.Errorf("refused after %s", took)
	}

	began = time.Now()
	refused(t, o, caller(alice), fine, "is not looked at: 2 earlier paths of uid 71001 still do not answer")
	if took := time.Since(began); took > 500*time.Millisecond {
		t.Errorf("refused after %s though all helpers hang", took)
	}
	opens(t, o, caller(bob), theirs)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := o.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a helper that cannot be killed is waited for: %v", err)
	}

	f.end()
	if err := o.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	opens(t, o, caller(alice), fine)
}

// Statfs on such a file system would hang the daemon itself, once the helper was let through.
func TestTheDaemonAsksAForeignFileSystemNothing(t *testing.T) {
	dir := folder(t, alice)
	f := mountFuse(t, mkdir(t, dir+"/fuse", alice, 0o755), fuseGetattr, fuseAccess)
	o := newOpener(t, callerfs.Rules{})
	t.Cleanup(f.end)
	refused(t, o, caller(alice), dir+"/fuse", "lies on a file system (fuse) that is not given to jobs")
	if n := f.count(fuseStatfs); n > 0 {
		t.Errorf("it was asked for its size %d times", n)
	}
	if f.count(fuseGetattr) == 0 {
		t.Error("it was asked for nothing: the test tried nothing")
	}
}
