package supervise

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Init and stub talk over two pipes that nobody else holds, in notes: a tag, a length of four bytes, that many bytes.
//
//	stub  ── ready ──►  init        the probes are done
//	stub  ◄── order ──  init        a wire.Start
//	stub  ── failed ─►  init        a wire.StartError, and the stub ends
//	stub  ── exec ───►  init        the time; the next thing is execve, which closes the pipe when it works
const (
	noteReady  = 'R'
	noteOrder  = 'O'
	noteFailed = 'F'
	noteExec   = 'X'
)

// maxNote is a start message with all that may be in it, without its split into frames.
const maxNote = 3 << 20

func writeNote(w io.Writer, tag byte, body []byte) error {
	b := make([]byte, 0, 5+len(body))
	b = binary.BigEndian.AppendUint32(append(b, tag), uint32(len(body)))
	_, err := w.Write(append(b, body...))
	return err
}

func readNote(r io.Reader) (tag byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxNote {
		return 0, nil, fmt.Errorf("a note of %d bytes", size)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(r, body)
	return head[0], body, err
}
