package results

import "encoding/binary"

// Sizes in bytes.
const (
	HeaderSize = 24        // of a record's header
	MaxPayload = 256 << 10 // of one record, and of one Append
)

// Kinds of records.
const (
	KindStdout uint8 = 1
	KindStderr uint8 = 2
	KindGap    uint8 = 3 // payload: 8 bytes, the number of bytes left out from Offset on
	KindEnd    uint8 = 4 // the stream is complete; no payload
)

// Record is one piece of a job's output.
type Record struct {
	Offset  uint64 // of the first byte, counted over both streams
	Time    int64  // Unix nanoseconds
	Kind    uint8
	Payload []byte
}

// Missing is the number of bytes a gap record stands for, 0 for other kinds.
func (r Record) Missing() uint64 {
	if r.Kind != KindGap || len(r.Payload) != gapSize {
		return 0
	}
	return binary.BigEndian.Uint64(r.Payload)
}

const gapSize = 8

// header is a record without its payload.
type header struct {
	off  uint64
	time int64
	n    int // length of the payload
	kind uint8
}

func (h header) put(b []byte) {
	_ = b[HeaderSize-1]
	binary.BigEndian.PutUint64(b[0:], h.off)
	binary.BigEndian.PutUint64(b[8:], uint64(h.time))
	binary.BigEndian.PutUint32(b[16:], uint32(h.n))
	b[20], b[21], b[22], b[23] = h.kind, 0, 0, 0
}

// size is that of the whole record.
func (h header) size() int64 { return HeaderSize + int64(h.n) }

func getHeader(b []byte) header {
	_ = b[HeaderSize-1]
	return header{
		off:  binary.BigEndian.Uint64(b[0:]),
		time: int64(binary.BigEndian.Uint64(b[8:])),
		n:    int(binary.BigEndian.Uint32(b[16:])),
		kind: b[20],
	}
}

// stored says whether b begins with a header as the Writer puts it in a file, for the stream's byte at off: only output
// is stored, gap and end are made for the reader.
func stored(b []byte, off uint64) (header, bool) {
	h := getHeader(b)
	ok := h.off == off && h.n > 0 && h.n <= MaxPayload && b[21]|b[22]|b[23] == 0 &&
		(h.kind == KindStdout || h.kind == KindStderr)
	return h, ok
}
