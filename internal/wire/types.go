package wire

import "strconv"

// Type says what a frame is. The numbers are part of the protocol and are never used twice.
type Type uint8

// Frames from init. Those marked with + are numbered and kept until acked.
const (
	TypeHello         Type = 0x01 // handshake: fresh or resume
	TypeInitProof     Type = 0x02 // handshake: init proves the key
	TypeReady         Type = 0x03 // + the stub is forked and waits
	TypeStarted       Type = 0x04 // + the command runs
	TypeOutput        Type = 0x05 // + raw bytes of stream 1 or 2
	TypeAgentLine     Type = 0x06 // + raw, one message of the agent (reserved)
	TypeArtifactBegin Type = 0x07 // + (reserved)
	TypeArtifactChunk Type = 0x08 // + raw (reserved)
	TypeArtifactEnd   Type = 0x09 // + (reserved)
	TypeExited        Type = 0x0a // + how the command ended; no output comes after it
	TypeResult        Type = 0x0b // + the authenticated result (reserved)
	TypeHeartbeat     Type = 0x0c // init lives
	TypeStdinCredit   Type = 0x0d // how much stdin the command has taken
)

// Frames to init. Those marked with + are numbered from 1 on each connection.
const (
	TypeWelcome     Type = 0x41 // handshake: the key
	TypeChallenge   Type = 0x42 // handshake: answer to hello{resume}
	TypeDaemonProof Type = 0x43 // handshake: the daemon proves the key
	TypeStart       Type = 0x44 // + the job; may span frames
	TypeSignal      Type = 0x45 // + a signal for the command's process group
	TypeCancel      Type = 0x46 // + end the job
	TypeLine        Type = 0x47 // + raw, one message for the agent (reserved)
	TypeAck         Type = 0x48 // frames up to seq are stored
	TypeEnd         Type = 0x49 // + all is stored, init may exit
	TypeStdin       Type = 0x4a // + raw bytes for the command; empty = end of input
	TypeLease       Type = 0x4b // + time left until the job must end
)

// Stream numbers of output frames. All other frames carry StreamNone.
const (
	StreamNone   uint8 = 0
	StreamStdout uint8 = 1
	StreamStderr uint8 = 2
)

// Side is one end of the connection.
type Side uint8

const (
	// SideInit is PID 1 in the container.
	SideInit Side = iota + 1
	// SideDaemon is sandboxd.
	SideDaemon
)

func (s Side) other() Side {
	if s == SideInit {
		return SideDaemon
	}
	return SideInit
}

// shape is what a type allows. One table for the codec of both sides.
type shape struct {
	name      string
	from      Side
	handshake bool // only before the connection is established
	numbered  bool
	raw       bool // payload is not JSON
	empty     bool // raw payload may be empty
	max       int  // bytes of the whole message
}

const (
	maxHandshake = 4 << 10
	maxSmall     = 16 << 10
)

var shapes = [256]shape{
	TypeHello:         {name: "hello", from: SideInit, handshake: true, max: maxHandshake},
	TypeInitProof:     {name: "init_proof", from: SideInit, handshake: true, max: maxHandshake},
	TypeReady:         {name: "ready", from: SideInit, numbered: true, max: maxSmall},
	TypeStarted:       {name: "started", from: SideInit, numbered: true, max: maxSmall},
	TypeOutput:        {name: "output", from: SideInit, numbered: true, raw: true, max: MaxPayload},
	TypeAgentLine:     {name: "agent_line", from: SideInit, numbered: true, raw: true, max: MaxPayload},
	TypeArtifactBegin: {name: "artifact_begin", from: SideInit, numbered: true, max: maxSmall},
	TypeArtifactChunk: {name: "artifact_chunk", from: SideInit, numbered: true, raw: true, max: MaxPayload},
	TypeArtifactEnd:   {name: "artifact_end", from: SideInit, numbered: true, max: maxSmall},
	TypeExited:        {name: "exited", from: SideInit, numbered: true, max: maxSmall},
	TypeResult:        {name: "result", from: SideInit, numbered: true, raw: true, max: MaxPayload},
	TypeHeartbeat:     {name: "heartbeat", from: SideInit, max: maxSmall},
	TypeStdinCredit:   {name: "stdin_credit", from: SideInit, max: maxSmall},

	TypeWelcome:     {name: "welcome", from: SideDaemon, handshake: true, max: maxHandshake},
	TypeChallenge:   {name: "challenge", from: SideDaemon, handshake: true, max: maxHandshake},
	TypeDaemonProof: {name: "daemon_proof", from: SideDaemon, handshake: true, max: maxHandshake},
	TypeStart:       {name: "start", from: SideDaemon, numbered: true, max: MaxStart},
	TypeSignal:      {name: "signal", from: SideDaemon, numbered: true, max: maxSmall},
	TypeCancel:      {name: "cancel", from: SideDaemon, numbered: true, max: maxSmall},
	TypeLine:        {name: "line", from: SideDaemon, numbered: true, raw: true, max: MaxPayload},
	TypeAck:         {name: "ack", from: SideDaemon, max: maxSmall},
	TypeEnd:         {name: "end", from: SideDaemon, numbered: true, max: maxSmall},
	TypeStdin:       {name: "stdin", from: SideDaemon, numbered: true, raw: true, empty: true, max: MaxPayload},
	TypeLease:       {name: "lease", from: SideDaemon, numbered: true, max: maxSmall},
}

// String is the name used in the documents, or the number of a type nobody defined.
func (t Type) String() string {
	if n := shapes[t].name; n != "" {
		return n
	}
	return "type " + strconv.Itoa(int(t))
}

// Numbered says whether frames of the type carry a sequence number.
func (t Type) Numbered() bool { return shapes[t].numbered }

// From is the side that may send the type, or 0 for a type nobody defined.
func (t Type) From() Side { return shapes[t].from }
