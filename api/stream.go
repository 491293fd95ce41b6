package api

import (
	"encoding/binary"
	"fmt"
	"io"
)

// StreamType is the media type of GET /v1/jobs/{id}/stream with "Accept: application/vnd.sandboxd.stream": a
// sequence of records, each a header of StreamHeaderSize bytes (big endian: offset u64, time i64 in Unix
// nanoseconds, length u32, kind u8, three zero bytes) and then length bytes of payload. The offset counts the bytes
// the command wrote on both streams, in the order they were read. Any other Accept gets the bare bytes.
const StreamType = "application/vnd.sandboxd.stream"

// StreamHeaderSize is the size of a record's header in bytes.
const StreamHeaderSize = 24

// MaxRecord bounds a record's payload in bytes.
const MaxRecord = 256 << 10

// Kinds of records.
const (
	KindStdout = 1
	KindStderr = 2
	KindGap    = 3 // payload: 8 bytes, the number of bytes left out from Offset on
	KindEnd    = 4 // the stream is complete; no payload
)

// Record is one piece of a job's output.
type Record struct {
	Offset  uint64
	Time    int64 // Unix nanoseconds
	Kind    uint8
	Payload []byte
}

// PutHeader writes the header of a record with a payload of n bytes into b, which has StreamHeaderSize bytes.
func (r Record) PutHeader(b []byte, n int) {
	binary.BigEndian.PutUint64(b[0:], r.Offset)
	binary.BigEndian.PutUint64(b[8:], uint64(r.Time))
	binary.BigEndian.PutUint32(b[16:], uint32(n))
	b[20], b[21], b[22], b[23] = r.Kind, 0, 0, 0
}

// ParseHeader reads a header and returns the record without its payload and the payload's length.
func ParseHeader(b []byte) (Record, int, error) {
	r := Record{Offset: binary.BigEndian.Uint64(b[0:]), Time: int64(binary.BigEndian.Uint64(b[8:])), Kind: b[20]}
	n := binary.BigEndian.Uint32(b[16:])
	if n > MaxRecord || r.Kind < KindStdout || r.Kind > KindEnd || b[21]|b[22]|b[23] != 0 {
		return r, 0, fmt.Errorf("bad stream record: kind %d, length %d", r.Kind, n)
	}
	return r, int(n), nil
}

// ReadRecord reads one record; the payload is read into buf, which has at least MaxRecord bytes, and is valid until
// the next call. io.EOF at a record's boundary is returned as it is.
func ReadRecord(rd io.Reader, buf []byte) (Record, error) {
	var h [StreamHeaderSize]byte
	if _, err := io.ReadFull(rd, h[:]); err != nil {
		return Record{}, err
	}
	r, n, err := ParseHeader(h[:])
	if err != nil {
		return r, err
	}
	if _, err := io.ReadFull(rd, buf[:n]); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return r, err
	}
	r.Payload = buf[:n]
	return r, nil
}
