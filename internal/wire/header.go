package wire

import "encoding/binary"

// Sizes in bytes.
const (
	HeaderSize  = 24
	MaxPayload  = 256 << 10 // of one frame
	MaxStart    = 3 << 20   // of a start message, over all its frames
	StdinWindow = 1 << 20   // stdin the daemon may send beyond what stdin_credit has returned
)

// More is the flag of a message that goes on in the next frame.
const More uint16 = 1 << 0

// Header is the fixed part of a frame. For a reassembled message, Len is the whole length and More is cleared.
type Header struct {
	Len    uint32
	Type   Type
	Stream uint8
	Flags  uint16
	Seq    uint64 // 0 on types that are not numbered
	Time   int64  // CLOCK_BOOTTIME of the sender, nanoseconds
}

// Put writes the header into the first HeaderSize bytes of b.
func (h Header) Put(b []byte) {
	_ = b[HeaderSize-1]
	binary.BigEndian.PutUint32(b[0:], h.Len)
	b[4] = byte(h.Type)
	b[5] = h.Stream
	binary.BigEndian.PutUint16(b[6:], h.Flags)
	binary.BigEndian.PutUint64(b[8:], h.Seq)
	binary.BigEndian.PutUint64(b[16:], uint64(h.Time))
}

// ParseHeader reads the first HeaderSize bytes of b, which nothing has checked yet.
func ParseHeader(b []byte) Header {
	_ = b[HeaderSize-1]
	return Header{
		Len:    binary.BigEndian.Uint32(b[0:]),
		Type:   Type(b[4]),
		Stream: b[5],
		Flags:  binary.BigEndian.Uint16(b[6:]),
		Seq:    binary.BigEndian.Uint64(b[8:]),
		Time:   int64(binary.BigEndian.Uint64(b[16:])),
	}
}

// check says whether a header from the given side is well formed, before a byte of its payload is read. What depends on
// earlier frames (sequence, order, the sum of a long message) is the Reader's.
func (h Header) check(from Side) error {
	s := &shapes[h.Type]
	switch {
	case s.name == "":
		return refuse(ErrType, h.Type, "not a frame type")
	case s.from != from:
		return refuse(ErrDirection, h.Type, "may not come from this side")
	case h.Len > MaxPayload:
		return refuse(ErrLength, h.Type, "%d bytes, at most %d", h.Len, MaxPayload)
	case int(h.Len) > s.max:
		return refuse(ErrLength, h.Type, "%d bytes, at most %d", h.Len, s.max)
	case h.Len == 0 && !s.empty:
		return refuse(ErrLength, h.Type, "empty")
	case h.Flags&^More != 0, h.Flags&More != 0 && s.max <= MaxPayload:
		return refuse(ErrFlags, h.Type, "%#x", h.Flags)
	case h.Time < 0:
		return refuse(ErrTime, h.Type, "negative")
	case (h.Seq != 0) != s.numbered:
		return refuse(ErrSequence, h.Type, "%d", h.Seq)
	}
	return h.checkStream()
}

func (h Header) checkStream() error {
	onOutput := h.Type == TypeOutput
	if onOutput && h.Stream != StreamStdout && h.Stream != StreamStderr || !onOutput && h.Stream != StreamNone {
		return refuse(ErrStream, h.Type, "%d", h.Stream)
	}
	return nil
}
