package supervise

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// Descriptors of the stub, given by init.
const (
	orderFD  = descriptor(3)
	statusFD = descriptor(4)
)

// RunStub is the life of the stub: it tells init what system calls it is denied, waits for its order, and becomes the
// command. It returns only when the command cannot be started. The caller has locked it to the main thread: the
// daemon's sched_setaffinity on the stub's pid is for that one, and exec must come from it.
func RunStub() error {
	unix.CloseOnExec(int(orderFD))
	unix.CloseOnExec(int(statusFD))
	ready := wire.Ready{StubPID: os.Getpid(), UID: os.Getuid(), GID: os.Getgid(), Denied: probe()}
	body, err := wire.Encode(ready)
	if err != nil {
		return err
	}
	if err := writeNote(statusFD, noteReady, body); err != nil {
		return fmt.Errorf("tell init: %w", err)
	}
	tag, body, err := readNote(orderFD)
	if err != nil || tag != noteOrder {
		return fmt.Errorf("read the order: %w", err)
	}
	start, err := wire.Decode[wire.Start](wire.Frame{Header: wire.Header{Type: wire.TypeStart}, Payload: body})
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	failed := become(start)
	body, err = json.Marshal(failed)
	if err != nil {
		return err
	}
	return writeNote(statusFD, noteFailed, body)
}

// become makes this process the command, or says what stood in the way.
func become(m wire.Start) *wire.StartError {
	unix.Umask(0o022)
	if err := unix.Chdir(m.Dir); err != nil {
		return startError(wire.OpChdir, m.Dir, err, "cannot enter the working directory")
	}
	if !m.Stdin {
		if err := emptyStdin(); err != nil {
			return startError(wire.OpStub, os.DevNull, err, "cannot give an empty stdin")
		}
	}
	path, failed := lookup(m.Argv[0], m.Env)
	if failed != nil {
		return failed
	}
	if failed := limit(m); failed != nil {
		return failed
	}
	closeOnExecAll()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		return startError(wire.OpStub, "", err, "cannot clear the signal mask")
	}
	unignoreAll()
	now := binary.BigEndian.AppendUint64(nil, uint64(wire.Boottime()))
	if err := writeNote(statusFD, noteExec, now); err != nil {
		return startError(wire.OpStub, "", err, "init is gone")
	}
	// Not unix.Exec: this one gives RLIMIT_NOFILE back, which the runtime raised.
	return execError(path, syscall.Exec(path, m.Argv, m.Env))
}

// sigaction is the kernel's, alike on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// unignoreAll gives every ignored signal its default back. Handlers an exec resets, but what is ignored stays so, those
// that the runtime leaves to the C library (32 to 34) included.
func unignoreAll() {
	const ignored, setSize = 1, 8
	for sig := uintptr(1); sig <= 64; sig++ {
		var act sigaction
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&act)), setSize, 0, 0); e == 0 && act.handler == ignored {
			act = sigaction{}
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&act)), 0, setSize, 0, 0)
		}
	}
}

func emptyStdin() error {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	return unix.Dup3(null, 0, 0)
}

// limit sets the resource limits. nproc comes last: from then on this process may not be able to make a thread.
func limit(m wire.Start) *wire.StartError {
	if m.Nofile > 0 {
		// Not unix.Setrlimit: this one makes the runtime forget the limit it would give back on exec.
		l := syscall.Rlimit{Cur: m.Nofile, Max: m.Nofile}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
			return startError(wire.OpLimit, "nofile", err, "cannot set the limit")
		}
	}
	if m.Nproc > 0 {
		l := unix.Rlimit{Cur: m.Nproc, Max: m.Nproc}
		if err := unix.Prlimit(0, unix.RLIMIT_NPROC, &l, nil); err != nil {
			return startError(wire.OpLimit, "nproc", err, "cannot set the limit")
		}
	}
	return nil
}

// closeOnExecAll leaves the command its first three descriptors. Old kernels and filters lack close_range; then the
// descriptors we know of are closed, and all others were opened so.
func closeOnExecAll() {
	if unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for fd := 3; fd < 256; fd++ {
		unix.CloseOnExec(fd)
	}
}

// startError words a failure. Path and errno travel apart; the text is one line for the user.
func startError(op, path string, err error, what string) *wire.StartError {
	path = strings.ToValidUTF8(path, "?")
	if len(path) > 4000 {
		path = path[:4000] + "…"
		path = strings.ToValidUTF8(path, "")
	}
	e := &wire.StartError{Op: op, Path: path}
	var errno unix.Errno
	if errors.As(err, &errno) {
		e.Errno = int(errno)
		what += ": " + errno.Error()
	}
	if path != "" {
		what = fmt.Sprintf("%q: %s", path, what)
	}
	e.Text = strings.ToValidUTF8(what[:min(len(what), 8000)], "")
	return e
}

func execError(path string, err error) *wire.StartError {
	what := "cannot be executed"
	switch {
	case errors.Is(err, unix.ENOEXEC):
		what = "is not executable: no #! line, and no program of this machine"
	case errors.Is(err, unix.ENOENT):
		what = "is there, but the interpreter it names is not"
	case errors.Is(err, unix.E2BIG):
		what = "arguments and environment are too long"
	}
	return startError(wire.OpExec, path, err, what)
}
