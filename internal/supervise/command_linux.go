package supervise

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// stubTime bounds how long the stub may take for its probes.
const stubTime = 10 * time.Second

// command is init's hold on the stub, and on the command that the stub becomes.
type command struct {
	pid     int
	ready   wire.Ready
	stdin   int
	stdout  int
	stderr  int
	order   descriptor
	status  *os.File
	outcome chan outcome // cap 1: how the start went
}

// outcome of a start: it worked, or failed.
type outcome struct {
	at     int64 // when the stub called execve
	failed *wire.StartError
}

// forkStub makes the pipes and the stub, once in a life and before the reaper runs: ForkExec waits for its child by pid
// when the exec fails. Never os/exec, which would wait for it always.
func forkStub(self string) (*command, error) {
	p, err := newPipes()
	if err != nil {
		return nil, err
	}
	theirs := p.theirs()
	files := make([]uintptr, len(theirs))
	for i, fd := range theirs {
		files[i] = uintptr(fd)
	}
	pid, err := syscall.ForkExec(self, []string{"sbx-init", "stub"}, &syscall.ProcAttr{
		Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	closeAll(theirs...)
	if err != nil {
		return nil, fmt.Errorf("fork the stub: %w", err)
	}
	if err := unix.SetNonblock(p.status.r, true); err != nil {
		return nil, fmt.Errorf("status pipe: %w", err)
	}
	c := &command{
		pid: pid, stdin: p.stdin.w, stdout: p.stdout.r, stderr: p.stderr.r, order: descriptor(p.order.w),
		status: os.NewFile(uintptr(p.status.r), "status"), outcome: make(chan outcome, 1),
	}
	return c, c.awaitReady()
}

func (c *command) awaitReady() error {
	if err := c.status.SetReadDeadline(time.Now().Add(stubTime)); err != nil {
		return fmt.Errorf("stub: %w", err)
	}
	tag, body, err := readNote(c.status)
	if err == nil && tag != noteReady {
		err = errors.New("said something else than ready")
	}
	if err == nil {
		err = c.status.SetReadDeadline(time.Time{})
	}
	if err == nil {
		c.ready, err = wire.Decode[wire.Ready](wire.Frame{Header: wire.Header{Type: wire.TypeReady}, Payload: body})
	}
	if err != nil {
		return fmt.Errorf("stub: %w", err)
	}
	return nil
}

// launch gives the stub its order and reports the outcome. It waits for the stub, so it has a goroutine of its own; the
// stub's death ends it.
func (c *command) launch(m wire.Start) {
	c.outcome <- c.start(m)
}

func (c *command) start(m wire.Start) outcome {
	defer c.status.Close()
	body, err := wire.Encode(m)
	if err == nil {
		err = writeNote(c.order, noteOrder, body)
	}
	_ = c.order.Close()
	if err != nil {
		return outcome{failed: startError(wire.OpStub, "", err, "the stub did not take its order")}
	}
	at := int64(0) // of the exec
	for {
		tag, body, err := readNote(c.status)
		switch {
		case errors.Is(err, io.EOF) && at > 0:
			return outcome{at: at}
		case err != nil:
			return outcome{failed: startError(wire.OpStub, "", nil, "the stub died before the command started")}
		case tag == noteExec && len(body) == 8:
			at = int64(binary.BigEndian.Uint64(body))
		case tag == noteFailed:
			var failed wire.StartError
			if err := json.Unmarshal(body, &failed); err != nil {
				failed = *startError(wire.OpStub, "", err, "the stub did not say why it failed")
			}
			return outcome{failed: &failed}
		}
	}
}
