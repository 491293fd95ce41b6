package wire

import "strings"

// Welcome answers hello{fresh}: who init is and the key it proves itself with later.
type Welcome struct {
	Instance string `json:"instance"`
	Slot     string `json:"slot"`
	Epoch    uint64 `json:"epoch"` // of the daemon process: higher for every later one
	Key      []byte `json:"key"`   // KeySize bytes
}

// Start is the job. Sizes as in execve: argv and env together at most 1 MiB, one string at most 128 KiB.
type Start struct {
	Argv  ByteStrings `json:"argv"`
	Env   ByteStrings `json:"env"`             // "K=V"; the whole environment, nothing is added
	Dir   string      `json:"dir"`             // absolute
	Stdin bool        `json:"stdin,omitempty"` // stdin frames will come; else the command reads /dev/null

	TimeoutMS int64 `json:"timeout_ms"` // wall clock of the command, from started; always set
	FinishMS  int64 `json:"finish_ms"`  // finishing window: from TERM to KILL when the time ran out
	GraceMS   int64 `json:"grace_ms"`   // from TERM to KILL when the lease ran out

	Nofile uint64 `json:"nofile,omitempty"` // RLIMIT_NOFILE, soft and hard; 0 = as the container has it
	Nproc  uint64 `json:"nproc,omitempty"`  // RLIMIT_NPROC, likewise

	AgentNonce string `json:"agent_nonce,omitempty"` // reserved for result: agent
	ResultMode string `json:"result_mode,omitempty"` // "", "exit"; others reserved
}

// Signal is sent to the command's process group.
type Signal struct {
	Signo int `json:"signo"` // 1 to 64
}

// Cancel ends the job: TERM to the process group, KILL of everything after the grace. Of several causes the first one
// counts; a later cancel can only shorten the time.
type Cancel struct {
	GraceMS int64  `json:"grace_ms"` // 0 = kill now
	Cause   string `json:"cause"`    // CauseCancel, CauseDeadline or CauseLease
}

// Ack says that all numbered frames up to Seq are stored.
type Ack struct {
	Seq uint64 `json:"seq"`
}

// End says that everything is stored and init may exit.
type End struct{}

// Lease says how long the job may go on. Each replaces the one before; without any there is no lease.
type Lease struct {
	RemainingMS int64 `json:"remaining_ms"` // 0 = it has run out
}

// Type and Validate of the messages to init.

func (Welcome) Type() Type { return TypeWelcome }
func (Start) Type() Type   { return TypeStart }
func (Signal) Type() Type  { return TypeSignal }
func (Cancel) Type() Type  { return TypeCancel }
func (Ack) Type() Type     { return TypeAck }
func (End) Type() Type     { return TypeEnd }
func (Lease) Type() Type   { return TypeLease }

// Validate bounds a welcome.
func (m Welcome) Validate() error {
	b := bounds{of: TypeWelcome}
	b.name(m.Instance, "instance", false)
	b.name(m.Slot, "slot", false)
	b.require(m.Epoch > 0, "epoch", "more than 0")
	b.require(len(m.Key) == KeySize, "key", "32 bytes")
	return b.err
}

const (
	maxArgEnv = 1 << 20   // argv and env together, as the kernel counts them without its pointers
	maxString = 128 << 10 // one string with its NUL
	maxItems  = 64 << 10
	maxMS     = 366 * 24 * 3600 * 1000
	maxRlimit = 1 << 30
)

// Validate bounds a start.
func (m Start) Validate() error {
	b := bounds{of: TypeStart}
	b.require(len(m.Argv) >= 1 && m.Argv[0] != "", "argv", "a command")
	b.require(len(m.Argv)+len(m.Env) <= maxItems, "argv", "fewer strings")
	total := b.strings(m.Argv, "argv") + b.strings(m.Env, "env")
	b.require(total <= maxArgEnv, "argv", "at most 1 MiB with env")
	for _, kv := range m.Env {
		b.require(strings.IndexByte(kv, '=') > 0, "env", "NAME=VALUE")
	}
	b.text(m.Dir, "dir", 4095)
	b.require(absolute(m.Dir) && strings.IndexByte(m.Dir, 0) < 0, "dir", "an absolute path")
	b.within(m.TimeoutMS, 1, maxMS, "timeout_ms")
	b.within(m.FinishMS, 0, maxMS, "finish_ms")
	b.within(m.GraceMS, 0, maxMS, "grace_ms")
	b.require(m.Nofile <= maxRlimit && m.Nproc <= maxRlimit, "nofile", "a number in its range")
	b.name(m.AgentNonce, "agent_nonce", true)
	b.require(m.ResultMode == "" || m.ResultMode == "exit", "result_mode", "exit")
	return b.err
}

func (b *bounds) strings(list []string, field string) int {
	total := 0
	for _, s := range list {
		b.require(len(s) < maxString, field, "strings of less than 128 KiB")
		b.require(strings.IndexByte(s, 0) < 0, field, "no NUL")
		total += len(s) + 1
	}
	return total
}

// Validate bounds a signal.
func (m Signal) Validate() error {
	b := bounds{of: TypeSignal}
	b.within(int64(m.Signo), 1, 64, "signo")
	return b.err
}

// Validate bounds a cancel.
func (m Cancel) Validate() error {
	b := bounds{of: TypeCancel}
	b.within(m.GraceMS, 0, maxMS, "grace_ms")
	b.require(m.Cause == CauseCancel || m.Cause == CauseDeadline || m.Cause == CauseLease, "cause", "a known cause")
	return b.err
}

// Validate bounds an ack.
func (m Ack) Validate() error {
	b := bounds{of: TypeAck}
	b.require(m.Seq > 0, "seq", "more than 0")
	return b.err
}

// Validate has nothing to bound.
func (End) Validate() error { return nil }

// Validate bounds a lease.
func (m Lease) Validate() error {
	b := bounds{of: TypeLease}
	b.within(m.RemainingMS, 0, maxMS, "remaining_ms")
	return b.err
}
