package wire

import (
	"errors"
	"io"
)

// readAhead is how much of later frames one read may bring along. Small, so that moving it to the front is cheap.
const readAhead = 16 << 10

// Frame is one message: header and payload. The payload is the Reader's buffer and is valid until the next Next.
type Frame struct {
	Header
	Payload []byte
}

// Reader takes frames of one side from a byte stream and checks all that can be checked without looking into the
// payload: bounds, direction, sequence, order. It refuses before it reads a payload, and reads a payload into one buffer
// it reuses. After an error every further call returns that error. Not safe for concurrent use.
type Reader struct {
	src  io.Reader
	from Side

	buf        []byte // holds buf[start:end], unread bytes of src
	start, end int
	long       []byte // a message of several frames
	err        error

	established bool
	pos         Position // of numbered frames; the stage only counts for frames from init
}

// NewReader reads frames that the side from sends. Until the handshake is over only handshake frames are taken.
func NewReader(src io.Reader, from Side) *Reader {
	return &Reader{src: src, from: from, buf: make([]byte, HeaderSize+readAhead)}
}

// Establish ends the handshake: from now on handshake frames are refused and numbered frames must follow at. The
// handshake functions call it; a test or a tool that replays frames may.
func (r *Reader) Establish(at Position) {
	r.established = true
	r.pos = at
}

// Position is the place after the last numbered frame that was read.
func (r *Reader) Position() Position { return r.pos }

// Buffered is how many bytes of later frames are here already: 0 says that the next Next may wait for the peer.
func (r *Reader) Buffered() int { return r.end - r.start }

// Next returns the next message. io.EOF means that the peer closed between two messages. Any refusal is a *FrameError.
func (r *Reader) Next() (Frame, error) {
	if r.err != nil {
		return Frame{}, r.err
	}
	f, err := r.message()
	if err != nil {
		r.err = err
		r.buf, r.long = nil, nil
		return Frame{}, err
	}
	return f, nil
}

func (r *Reader) message() (Frame, error) {
	r.long = nil
	f, err := r.frame()
	if err != nil || f.Flags&More == 0 {
		return f, err
	}
	whole := f.Header
	for {
		if len(r.long)+len(f.Payload) > shapes[whole.Type].max {
			return Frame{}, refuse(ErrLength, whole.Type, "message of more than %d bytes", shapes[whole.Type].max)
		}
		r.long = append(r.long, f.Payload...)
		if f.Flags&More == 0 {
			whole.Flags, whole.Seq, whole.Len = 0, f.Seq, uint32(len(r.long))
			return Frame{Header: whole, Payload: r.long}, nil
		}
		if f, err = r.frame(); err != nil {
			return Frame{}, midMessage(err, whole.Type)
		}
		if f.Type != whole.Type {
			return Frame{}, refuse(ErrOrder, f.Type, "inside a message of type %s", whole.Type)
		}
	}
}

func midMessage(err error, t Type) error {
	if errors.Is(err, io.EOF) {
		return refuse(ErrTruncated, t, "connection ended inside a message")
	}
	return err
}

func (r *Reader) frame() (Frame, error) {
	if err := r.fill(HeaderSize); err != nil {
		return Frame{}, err
	}
	h := ParseHeader(r.buf[r.start:r.end])
	if err := h.check(r.from); err != nil {
		return Frame{}, err
	}
	if err := r.follow(h); err != nil {
		return Frame{}, err
	}
	size := HeaderSize + int(h.Len)
	if err := r.fill(size); err != nil {
		return Frame{}, midMessage(err, h.Type)
	}
	payload := r.buf[r.start+HeaderSize : r.start+size : r.start+size]
	r.start += size
	return Frame{Header: h, Payload: payload}, nil
}

// follow checks a well formed header against the frames before it and moves the position.
func (r *Reader) follow(h Header) error {
	if shapes[h.Type].handshake == r.established {
		return refuse(ErrOrder, h.Type, "handshake over: %t", r.established)
	}
	if !h.Type.Numbered() {
		return nil
	}
	if h.Seq != r.pos.Seq+1 {
		return refuse(ErrSequence, h.Type, "%d after %d", h.Seq, r.pos.Seq)
	}
	if r.from == SideDaemon {
		r.pos.Seq = h.Seq
		return nil
	}
	pos, err := r.pos.next(h.Type)
	r.pos = pos
	return err
}

// fill brings at least n unread bytes into the buffer; n is at most HeaderSize+MaxPayload. The buffer grows once, when
// a checked header first asks for more than a small frame.
func (r *Reader) fill(n int) error {
	if r.end-r.start >= n {
		return nil
	}
	if r.start+n > len(r.buf) || r.start == r.end {
		into := r.buf
		if n > len(r.buf) {
			into = make([]byte, HeaderSize+MaxPayload+readAhead)
		}
		r.end = copy(into, r.buf[r.start:r.end])
		r.start, r.buf = 0, into
	}
	for tries := 0; r.end-r.start < n; {
		limit := min(r.start+n+readAhead, len(r.buf))
		got, err := r.src.Read(r.buf[r.end:limit])
		r.end += got
		if r.end-r.start >= n {
			return nil
		}
		if err == nil {
			if tries++; got == 0 && tries > 100 {
				return io.ErrNoProgress
			}
			continue
		}
		if errors.Is(err, io.EOF) && r.end > r.start {
			return refuse(ErrTruncated, 0, "connection ended inside a frame")
		}
		return err
	}
	return nil
}
