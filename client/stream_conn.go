package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"sandboxd/api"
)

func (s *Stream) connect() error {
	s.req.query = url.Values{"from": {strconv.FormatUint(s.next, 10)}}
	if s.opts.Follow {
		s.req.query.Set("follow", "true")
	}
	if s.opts.Only != "" {
		s.req.query.Set("stream", s.opts.Only)
	}
	resp, err := s.c.open(s.ctx, s.req)
	if err != nil {
		return err
	}
	if t := mediaType(resp); t != api.StreamType {
		_ = resp.Body.Close()
		return &ProtocolError{Call: s.req.String(), Detail: fmt.Sprintf("media type %.60q instead of %s", t, api.StreamType)}
	}
	s.body, s.opened, s.idle = resp.Body, time.Now(), true
	return nil
}

func (s *Stream) disconnect() {
	if s.body != nil {
		_ = s.body.Close() // a read-only stream: nothing is lost by it
		s.body = nil
	}
}

// reconnect waits and connects again; nil also when that failed and may yet succeed.
func (s *Stream) reconnect() error {
	err := s.connect()
	if err == nil || !passing(err) {
		return err
	}
	return s.lost.worn(s.ctx, err)
}

// interrupted decides what the end of a connection means: nil to go on. A daemon that stops ends it in good order, too,
// so without an end record only the job's state tells whether there is more.
func (s *Stream) interrupted(err error) error {
	s.disconnect()
	var odd *ProtocolError
	if errors.As(err, &odd) {
		return err
	}
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) {
		done, jerr := s.c.isDone(s.ctx, s.ref)
		if jerr == nil && (done && s.idle || !done && !s.opts.Follow) {
			s.done = true
			return nil
		}
	}
	if time.Since(s.opened) > steady {
		s.lost.calm()
	}
	return s.lost.worn(s.ctx, s.c.socketError(err))
}

// read reads one record into buf. A record that makes no sense is a *ProtocolError: there is no way to find the next
// one behind it.
func (s *Stream) read() (api.Record, error) {
	var header [api.StreamHeaderSize]byte
	if _, err := io.ReadFull(s.body, header[:]); err != nil {
		return api.Record{}, err
	}
	r, n, err := api.ParseHeader(header[:])
	if err != nil {
		return r, &ProtocolError{Call: s.req.String(), Detail: "a bad record", Err: err}
	}
	if _, err := io.ReadFull(s.body, s.buf[:n]); err != nil {
		return r, io.ErrUnexpectedEOF
	}
	r.Payload = s.buf[:n]
	return r, nil
}
