package sandbox

import (
	"errors"
	"fmt"
	"strings"
)

// GateError says that a live container is not what was asked for. It was destroyed before any code of the user ran.
type GateError struct {
	Slot     string
	Findings []string // each one names what, what was wanted and what was found
}

func (e *GateError) Error() string {
	return fmt.Sprintf("start gate of slot %s: %s", e.Slot, strings.Join(e.Findings, "; "))
}

// StuckError says that processes of a slot outlive SIGKILL (uninterruptible sleep). Its uid stays quarantined.
type StuckError struct {
	Slot string
	Pids []int
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("slot %s: processes %v cannot be killed", e.Slot, e.Pids)
}

// Errors of the room, for errors.Is.
var (
	ErrNoUID        = errors.New("no slot uid is free")
	ErrClosed       = errors.New("sandbox is closed")
	ErrNoJobCgroup  = errors.New("the slot has no cgroup of its own for the job")
	ErrNotOurs      = errors.New("the container does not carry the label and name of the record")
	ErrInitTimeout  = errors.New("init did not get ready in time")
	ErrInitDied     = errors.New("the container ended before init was ready")
	ErrNotSupported = errors.New("not supported on this host")
)
