package wire

import (
	"path"
	"time"
)

const (
	// Product is what init calls itself, so that a foreign socket is recognised.
	Product = "sandboxd-init"
	// Version of this protocol. Both sides must speak the same: they come from one build.
	Version = 1
	// NonceSize and KeySize in bytes.
	NonceSize = 32
	KeySize   = 32
	// HeartbeatEvery is how often init sends a heartbeat, whatever else it sends.
	HeartbeatEvery = 5 * time.Second
)

// Hello opens every connection.
type Hello struct {
	Product string `json:"product"`
	Version int    `json:"version"`
	Resume  bool   `json:"resume,omitempty"` // init has a key and wants to go on
	Slot    string `json:"slot,omitempty"`   // empty when fresh and not told
	Nonce   []byte `json:"nonce"`            // NonceSize bytes, new for each connection
}

// Ready says that the stub is forked and waits. Denied holds the errno that each probed system call gave the stub, 0
// for one that was let through: evidence of the seccomp filter.
type Ready struct {
	StubPID int            `json:"stub_pid"` // in the container's pid namespace
	UID     int            `json:"uid"`
	GID     int            `json:"gid"`
	Denied  map[string]int `json:"denied,omitempty"`
}

// The probes of Ready.Denied.
const (
	ProbeIOUring     = "io_uring_setup"
	ProbeVsock       = "socket_vsock"
	ProbeUnshareUser = "unshare_user"
	ProbeOpenat2     = "openat2"
	ProbeSetuidBit   = "chmod_setuid"
)

// Started says that the command's exec succeeded.
type Started struct {
	PID  int   `json:"pid"`   // in the container's pid namespace, and leader of its process group and session
	AtNS int64 `json:"at_ns"` // CLOCK_BOOTTIME
}

// StreamSum is the size and CRC-32C (Castagnoli) of one stream.
type StreamSum struct {
	Bytes  uint64 `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

// Steps at which a start may fail.
const (
	OpLookup = "lookup" // argv[0] is nowhere: exit code 127
	OpExec   = "exec"   // it is there and is not executable: exit code 126
	OpChdir  = "chdir"  // the directory cannot be entered
	OpLimit  = "limit"  // a resource limit cannot be set
	OpStub   = "stub"   // the stub died before its exec
)

// StartError is why the command did not start.
type StartError struct {
	Op    string `json:"op"`
	Path  string `json:"path,omitempty"`  // as far as it is valid text, at most 4096 bytes
	Errno int    `json:"errno,omitempty"` // 0 when there is none
	Text  string `json:"text"`            // one line for the user
}

// Causes of an end that init brought about itself.
const (
	CauseNone     = ""
	CauseCancel   = "cancel"
	CauseDeadline = "deadline"
	CauseLease    = "lease"
)

// Rusage is what the kernel counted for the command and the descendants it waited for.
type Rusage struct {
	UserNS    int64 `json:"user_ns"`
	SysNS     int64 `json:"sys_ns"`
	MaxRSSKiB int64 `json:"max_rss_kib"`
}

// Exited is how the command's main process ended. It comes after the last output frame.
type Exited struct {
	Code       int         `json:"code"`   // exit status; 0 when a signal ended it
	Signal     int         `json:"signal"` // 0 when it exited
	CoreDumped bool        `json:"core_dumped,omitempty"`
	StartError *StartError `json:"start_error,omitempty"` // then started never came, and Code and Signal are 0
	Cause      string      `json:"cause,omitempty"`       // what init did to end it; the first that happened
	TermSent   bool        `json:"term_sent,omitempty"`
	KillSent   bool        `json:"kill_sent,omitempty"` // before the main process ended
	LeftKilled int         `json:"left_killed"`         // processes still alive when it ended, at least
	CutShort   bool        `json:"cut_short,omitempty"` // the pipes did not end within 2 s and were closed
	Stdout     StreamSum   `json:"stdout"`
	Stderr     StreamSum   `json:"stderr"`
	WallNS     int64       `json:"wall_ns"` // from started to the end of the main process
	Rusage     Rusage      `json:"rusage"`
}

// StdinCredit tells how much of stdin is taken off init's hands: written to the command, or dropped because the command
// closed its stdin. It is a running total, so a lost or repeated one does no harm: the daemon may have sent
// Bytes+StdinWindow at most.
type StdinCredit struct {
	Bytes  uint64 `json:"bytes"`
	Closed bool   `json:"closed,omitempty"` // the command reads no more; what comes is dropped
}

// Heartbeat says that init lives.
type Heartbeat struct{}

// Type and Validate of the messages from init.

func (Hello) Type() Type       { return TypeHello }
func (Ready) Type() Type       { return TypeReady }
func (Started) Type() Type     { return TypeStarted }
func (Exited) Type() Type      { return TypeExited }
func (StdinCredit) Type() Type { return TypeStdinCredit }
func (Heartbeat) Type() Type   { return TypeHeartbeat }

// Validate bounds a hello. Product and version are the handshake's to judge.
func (m Hello) Validate() error {
	b := bounds{of: TypeHello}
	b.name(m.Product, "product", false)
	b.within(int64(m.Version), 1, 1<<16, "version")
	b.name(m.Slot, "slot", !m.Resume)
	b.require(len(m.Nonce) == NonceSize, "nonce", "32 bytes")
	return b.err
}

// Validate bounds a ready.
func (m Ready) Validate() error {
	b := bounds{of: TypeReady}
	b.within(int64(m.StubPID), 2, maxPID, "stub_pid")
	b.within(int64(m.UID), 0, maxID, "uid")
	b.within(int64(m.GID), 0, maxID, "gid")
	b.require(len(m.Denied) <= 16, "denied", "at most 16 probes")
	for name, errno := range m.Denied {
		b.name(name, "denied", false)
		b.within(int64(errno), 0, maxErrno, "denied")
	}
	return b.err
}

// Validate bounds a started.
func (m Started) Validate() error {
	b := bounds{of: TypeStarted}
	b.within(int64(m.PID), 2, maxPID, "pid")
	b.within(m.AtNS, 0, maxNS, "at_ns")
	return b.err
}

// Validate bounds an exited.
func (m Exited) Validate() error {
	b := bounds{of: TypeExited}
	b.within(int64(m.Code), 0, 255, "code")
	b.within(int64(m.Signal), 0, 64, "signal")
	b.require(m.Code == 0 || m.Signal == 0, "code", "a code or a signal, not both")
	b.require(m.Cause == CauseNone || m.Cause == CauseCancel || m.Cause == CauseDeadline || m.Cause == CauseLease,
		"cause", "a known cause")
	b.within(int64(m.LeftKilled), 0, maxPID, "left_killed")
	b.require(m.Stdout.Bytes <= maxNS && m.Stderr.Bytes <= maxNS, "bytes", "a number in its range")
	b.within(m.WallNS, 0, maxNS, "wall_ns")
	b.within(m.Rusage.UserNS, 0, maxNS, "user_ns")
	b.within(m.Rusage.SysNS, 0, maxNS, "sys_ns")
	b.within(m.Rusage.MaxRSSKiB, 0, maxNS, "max_rss_kib")
	if e := m.StartError; e != nil {
		b.require(m.Code == 0 && m.Signal == 0, "start_error", "no status beside it")
		b.require(e.Op == OpLookup || e.Op == OpExec || e.Op == OpChdir || e.Op == OpLimit || e.Op == OpStub, "op", "a known step")
		b.text(e.Path, "path", 4096)
		b.within(int64(e.Errno), 0, maxErrno, "errno")
		b.text(e.Text, "text", 8192)
	}
	return b.err
}

// Validate bounds a stdin credit.
func (m StdinCredit) Validate() error {
	b := bounds{of: TypeStdinCredit}
	b.require(m.Bytes <= maxNS, "bytes", "a number in its range")
	return b.err
}

// Validate has nothing to bound.
func (Heartbeat) Validate() error { return nil }

const (
	maxPID   = 1 << 22 // the kernel's PID_MAX_LIMIT
	maxID    = 1<<32 - 2
	maxErrno = 4095
	maxNS    = 1<<62 - 1
)

func absolute(dir string) bool { return path.IsAbs(dir) && len(dir) < 4096 }
