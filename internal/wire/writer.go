package wire

import (
	"io"
	"net"
	"sync"
)

// Writer puts frames of one side on a byte stream, header and payload in one writev where the stream is a socket. It
// numbers them. Safe for concurrent use; a message of several frames is never interleaved. After an error the
// connection is of no more use.
type Writer struct {
	dst   io.Writer
	from  Side
	clock func() int64

	mu     sync.Mutex
	seq    uint64
	header [HeaderSize]byte
	vec    [2][]byte
	bufs   net.Buffers // in the struct, so that a frame costs no allocation
}

// NewWriter sends as the side from. clock gives the time of a frame; nil means CLOCK_BOOTTIME.
func NewWriter(dst io.Writer, from Side, clock func() int64) *Writer {
	if clock == nil {
		clock = Boottime
	}
	return &Writer{dst: dst, from: from, clock: clock}
}

// Send validates and sends a message.
func (w *Writer) Send(m Message) error {
	payload, err := Encode(m)
	if err != nil {
		return err
	}
	return w.SendBytes(m.Type(), StreamNone, payload)
}

// SendBytes sends a payload as it is. A start message is split; every other type is bounded to one frame, and a longer
// payload is ErrLength.
func (w *Writer) SendBytes(t Type, stream uint8, payload []byte) error {
	if len(payload) > shapes[t].max {
		return refuse(ErrLength, t, "%d bytes, at most %d", len(payload), shapes[t].max)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		part := payload[:min(len(payload), MaxPayload)]
		payload = payload[len(part):]
		h := Header{Type: t, Stream: stream, Len: uint32(len(part)), Time: w.clock()}
		if t.Numbered() {
			h.Seq = w.seq + 1
		}
		if len(payload) > 0 {
			h.Flags = More
		}
		if err := w.frameLocked(h, part); err != nil || len(payload) == 0 {
			return err
		}
	}
}

func (w *Writer) frameLocked(h Header, payload []byte) error {
	if err := h.check(w.from); err != nil {
		return err
	}
	if h.Type.Numbered() {
		w.seq = h.Seq
	}
	h.Put(w.header[:])
	w.vec = [2][]byte{w.header[:], payload}
	w.bufs = w.vec[:]
	_, err := w.bufs.WriteTo(w.dst)
	w.vec = [2][]byte{}
	return err
}

// WriteEncoded sends frames that are encoded already, headers included: init's kept frames. Their numbers are the
// caller's.
func (w *Writer) WriteEncoded(frames []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.dst.Write(frames)
	return err
}
