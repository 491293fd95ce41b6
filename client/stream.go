package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sandboxd/api"
)

// StreamOptions select what Stream returns.
type StreamOptions struct {
	From   uint64 // offset of the first byte wanted, counted over both streams
	Follow bool   // wait for more until the job's output is complete
	Only   string // "stdout" or "stderr"; empty is both
}

// Stream is a job's recorded output, as records. One goroutine reads it; any may Close it.
type Stream struct {
	c      *Client
	ctx    context.Context // of the whole stream, which reconnects on it
	cancel context.CancelFunc
	ref    string
	req    request
	opts   StreamOptions

	next uint64 // offset of the next byte to hand out
	done bool
	held *api.Record // read already, handed out next; its payload is in buf
	buf  []byte

	body   io.ReadCloser // nil while not connected
	opened time.Time
	idle   bool // no record came on this connection
	lost   patience
}

// Stream opens the output of a job. A connection that is lost later is made again from the byte where it was cut: no
// byte is lost and none comes twice. ctx bounds the whole stream.
func (c *Client) Stream(ctx context.Context, ref string, o StreamOptions) (*Stream, error) {
	path, err := jobPath(ref, api.PathStream)
	if err != nil {
		return nil, err
	}
	if _, err := c.Version(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{
		c: c, ctx: ctx, cancel: cancel, ref: ref, opts: o, next: o.From, lost: patience{limit: c.retryFor},
		req: request{method: http.MethodGet, path: path, accept: api.StreamType},
		buf: make([]byte, api.MaxRecord),
	}
	if err := c.paced(ctx, s.connect); err != nil && !errors.Is(err, ErrLost) {
		cancel()
		return nil, err
	}
	return s, nil
}

// Close ends the stream and frees its connection.
func (s *Stream) Close() { s.cancel() }

// Offset is the offset of the next byte; pass it as From to go on later.
func (s *Stream) Offset() uint64 { return s.next }

// Next returns the next piece of output: kind stdout or stderr with its bytes, or a gap with the number of bytes that
// were left out (GapSize). The payload is valid until the next call. io.EOF is the end: the output is complete, or,
// without Follow, there is no more at present.
func (s *Stream) Next() (api.Record, error) {
	if r := s.held; r != nil {
		s.held = nil
		r, _, err := s.accept(*r)
		return r, err
	}
	for !s.done {
		if s.body == nil {
			if err := s.reconnect(); err != nil {
				return api.Record{}, err
			}
			continue
		}
		r, err := s.read()
		if err != nil {
			if err := s.interrupted(err); err != nil {
				return api.Record{}, err
			}
			continue
		}
		s.idle = false
		s.lost.calm()
		if r, ok, err := s.accept(r); ok || err != nil {
			return r, err
		}
	}
	return api.Record{}, io.EOF
}

// accept fits a record to the offset: bytes that were handed out already are cut off, and a hole that the daemon did
// not declare is handed out as a gap, so that nothing goes missing in silence.
func (s *Stream) accept(r api.Record) (api.Record, bool, error) {
	size := uint64(len(r.Payload))
	switch r.Kind {
	case api.KindEnd:
		s.done = true
		s.disconnect()
		return r, false, nil
	case api.KindGap:
		if size != 8 {
			return r, false, &ProtocolError{Call: s.req.String(), Detail: fmt.Sprintf("a gap record of %d bytes", size)}
		}
		size = GapSize(r)
	}
	end := r.Offset + size
	switch {
	case end < r.Offset:
		return r, false, &ProtocolError{Call: s.req.String(), Detail: fmt.Sprintf("a record past the end of all offsets (%d)", r.Offset)}
	case end <= s.next:
		return r, false, nil
	case r.Offset > s.next && s.opts.Only == "":
		gap := gapRecord(s.next, r.Offset-s.next, r.Time)
		s.next, s.held = r.Offset, &r
		return gap, true, nil
	case r.Offset < s.next && r.Kind == api.KindGap:
		r = gapRecord(s.next, end-s.next, r.Time)
	case r.Offset < s.next:
		r.Payload = r.Payload[s.next-r.Offset:]
		r.Offset = s.next
	}
	s.next = end
	return r, true, nil
}

// GapSize is the number of bytes a gap record stands for; 0 for other records.
func GapSize(r api.Record) uint64 {
	if r.Kind != api.KindGap || len(r.Payload) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(r.Payload)
}

func gapRecord(offset, size uint64, nanos int64) api.Record {
	return api.Record{Offset: offset, Time: nanos, Kind: api.KindGap, Payload: binary.BigEndian.AppendUint64(nil, size)}
}
