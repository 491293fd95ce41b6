package supervise

import (
	"encoding/binary"
	"errors"
	"sync"

	"sandboxd/internal/wire"
)

const (
	ringSize = 4 << 20
	// ringReserve is kept free of output, so that started and exited always find room: of the at most two free areas,
	// one then holds the largest control frame.
	ringReserve = 64 << 10
	// minChunk is the least room worth a read.
	minChunk = 16 << 10
	// maxBatch is how much goes into one write: small enough that acks free room while the next is written.
	maxBatch = 512 << 10
	// Output of the same stream joins the last frame while that one waits to be sent, so that a job that writes single
	// bytes does not fill the ring with headers.
	joinBytes = 4 << 10
	joinNS    = 50 * ms
)

var errNoRoom = errors.New("no room for a control frame")

// ring keeps the numbered frames, encoded, until they are acked. Frames never straddle the end of the buffer, so the
// sender writes them from where the pipes were read to: output is never copied, but for small joined pieces.
//
// Offsets only grow; modulo the size they are places in buf. head ≤ sent ≤ tail. Where a frame did not fit before the
// end of the buffer, the frames stop at gap and go on at the next multiple of the size; there is at most one gap
// between head and tail.
type ring struct {
	buf  []byte
	wake chan struct{} // cap 1: there is something to send

	mu      sync.Mutex
	room    *sync.Cond // of mu: frames were dropped, or closed
	head    uint64     // oldest kept frame
	sent    uint64     // next frame to hand to the sender
	tail    uint64     // where the next frame goes
	gap     uint64
	last    uint64 // the last frame, while more output may join it; else noFrame
	writing bool   // the sender reads frames from written to sent
	written uint64
	seq     uint64 // of the last frame put in
	shown   uint64 // of the last frame ever handed to a sender
	acked   uint64
	dropped uint64 // of the last frame dropped
	closed  bool
}

const noFrame = ^uint64(0)

// newRing needs a size of at least four chunks more than the reserve.
func newRing(size int) *ring {
	r := &ring{buf: make([]byte, size), gap: noFrame, last: noFrame, wake: make(chan struct{}, 1)}
	r.room = sync.NewCond(&r.mu)
	return r
}

// reserve waits for room for a header and a chunk of output, and returns it; nil when the ring is closed. One goroutine
// at a time reserves and commits, and nothing else is put in between.
func (r *ring) reserve() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.closed {
		if b := r.areaLocked(wire.HeaderSize+minChunk, ringReserve); b != nil {
			return b[:min(len(b), wire.HeaderSize+wire.MaxPayload)]
		}
		r.room.Wait()
	}
	return nil
}

// areaLocked finds at least n free bytes in one piece at the tail, leaving spare bytes free, or returns nil.
func (r *ring) areaLocked(n, spare int) []byte {
	if r.head == r.tail && !r.writing { // empty: use the front again, whose pages are in memory
		r.tail = r.roundUp(r.tail)
		r.head, r.sent, r.gap, r.last = r.tail, r.tail, noFrame, noFrame
	}
	free := len(r.buf) - int(r.tail-r.head) - spare
	at := r.place(r.tail)
	toEnd := len(r.buf) - at
	if b := min(toEnd, free); b >= n {
		return r.buf[at : at+b]
	}
	if free-toEnd < n {
		return nil
	}
	r.gap, r.last = r.tail, noFrame
	r.tail = r.roundUp(r.tail)
	r.sent = r.skipGap(r.sent)
	r.head = r.skipGap(r.head)
	return r.buf[:free-toEnd]
}

func (r *ring) place(off uint64) int { return int(off % uint64(len(r.buf))) }

func (r *ring) roundUp(off uint64) uint64 {
	size := uint64(len(r.buf))
	return (off + size - 1) / size * size
}

func (r *ring) skipGap(off uint64) uint64 {
	if off == r.gap {
		return r.roundUp(off)
	}
	return off
}

// next is the offset of the frame after the one at off.
func (r *ring) next(off uint64) uint64 {
	size := wire.HeaderSize + uint64(binary.BigEndian.Uint32(r.buf[r.place(off):]))
	return r.skipGap(off + size)
}

// commit makes the n bytes read behind the header room of the last reserve an output frame.
func (r *ring) commit(stream uint8, n int, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.joinLocked(stream, n, now) {
		r.putLocked(wire.Header{Type: wire.TypeOutput, Stream: stream, Len: uint32(n), Time: now})
	}
}

func (r *ring) joinLocked(stream uint8, n int, now int64) bool {
	at := r.place(r.tail)
	if r.last == noFrame || n > joinBytes || at == 0 { // at 0 the last frame filled the buffer to its end
		return false
	}
	frame := r.buf[r.place(r.last):]
	h := wire.ParseHeader(frame)
	if h.Stream != stream || int(h.Len)+n > wire.MaxPayload || now-h.Time > joinNS {
		return false
	}
	h.Len += uint32(n)
	h.Put(frame)
	copy(r.buf[at:], r.buf[at+wire.HeaderSize:at+wire.HeaderSize+n])
	r.tail += uint64(n)
	return true
}

// putLocked numbers a frame whose payload is in place, and writes its header.
func (r *ring) putLocked(h wire.Header) {
	r.seq++
	h.Seq = r.seq
	h.Put(r.buf[r.place(r.tail):])
	r.last = noFrame
	if h.Type == wire.TypeOutput {
		r.last = r.tail
	}
	r.tail += uint64(wire.HeaderSize + h.Len)
	r.signal()
}

// control puts in a control message. It finds room when output does not.
func (r *ring) control(m wire.Message, now int64) error {
	payload, err := wire.Encode(m)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.areaLocked(wire.HeaderSize+len(payload), 0)
	if b == nil {
		return errNoRoom
	}
	copy(b[wire.HeaderSize:], payload)
	r.putLocked(wire.Header{Type: m.Type(), Len: uint32(len(payload)), Time: now})
	return nil
}

// take gives the next frames to send, or nil. The sender calls wrote before it takes again.
func (r *ring) take() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == r.tail {
		return nil
	}
	from := r.sent
	end := from // of the batch: differs from sent where sent skips the gap
	frames := uint64(0)
	for r.sent == end && r.sent < r.tail && end-from < maxBatch {
		if end > from && r.place(end) == 0 {
			break // the next frame lies at the front again
		}
		end += uint64(wire.HeaderSize) + uint64(binary.BigEndian.Uint32(r.buf[r.place(r.sent):]))
		r.sent = r.skipGap(end)
		frames++
	}
	if r.last != noFrame && r.last < r.sent {
		r.last = noFrame
	}
	r.writing, r.written = true, from
	r.shown = max(r.shown, r.seqAtLocked(from)+frames-1)
	at := r.place(from)
	return r.buf[at : at+int(end-from)]
}

func (r *ring) seqAtLocked(off uint64) uint64 { return wire.ParseHeader(r.buf[r.place(off):]).Seq }

// wrote says that the sender no longer reads the taken frames, whether it got them out or not.
func (r *ring) wrote() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = false
	r.dropLocked()
}

// ack drops frames up to seq; those that are being written, afterwards.
func (r *ring) ack(seq uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq > r.shown {
		return wire.ErrSequence
	}
	r.acked = max(r.acked, seq)
	r.dropLocked()
	return nil
}

func (r *ring) dropLocked() {
	stop := r.sent
	if r.writing {
		stop = r.written
	}
	for r.dropped < r.acked && r.head != stop {
		r.head = r.next(r.head)
		r.dropped++
	}
	r.room.Signal()
}

// rewind prepares for a new connection, on which everything after seq is sent again: the daemon holds what is up to
// seq. The sender of the old connection has ended.
func (r *ring) rewind(seq uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq < r.acked || seq > r.shown {
		return wire.ErrResume
	}
	r.acked, r.sent = seq, r.tail
	r.dropLocked()
	r.sent, r.last = r.head, noFrame
	r.signal()
	return nil
}

func (r *ring) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close wakes and refuses who waits for room.
func (r *ring) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.room.Broadcast()
}
