package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"sandboxd/api"
)

// maxEventLine bounds one event in bytes.
const maxEventLine = 1 << 20

// EventOptions select what Events returns.
type EventOptions struct {
	After  int64 // number of the last event already known; 0 starts at the first
	Follow bool  // wait for more
}

// Events is the ordered record of what happened to the caller's jobs. One goroutine reads it; any may Close it.
type Events struct {
	c      *Client
	ctx    context.Context // of the whole reading, which reconnects on it
	cancel context.CancelFunc
	follow bool

	last   int64 // number of the last event handed out
	body   io.ReadCloser
	lines  *bufio.Reader
	opened time.Time
	lost   patience
}

// Events opens the caller's events. A connection that is lost later is made again after the last event that came, so
// that none is lost and none comes twice. ctx bounds the whole reading.
func (c *Client) Events(ctx context.Context, o EventOptions) (*Events, error) {
	if _, err := c.Version(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	e := &Events{c: c, ctx: ctx, cancel: cancel, follow: o.Follow, last: o.After, lost: patience{limit: c.retryFor}}
	if err := c.paced(ctx, e.connect); err != nil && !errors.Is(err, ErrLost) {
		cancel()
		return nil, err
	}
	return e, nil
}

// Close ends the reading and frees its connection.
func (e *Events) Close() { e.cancel() }

// Next returns the next event; io.EOF is the end, which never comes with Follow.
func (e *Events) Next() (api.Event, error) {
	for {
		if e.body == nil {
			if err := e.reconnect(); err != nil {
				return api.Event{}, err
			}
			continue
		}
		line, err := e.line()
		switch {
		case errors.Is(err, errLongLine):
			return api.Event{}, e.nonsense("an event of more than a mebibyte", nil)
		case err != nil:
			if err := e.interrupted(err); err != nil {
				return api.Event{}, err
			}
			continue
		case len(line) == 0: // a heartbeat
			continue
		}
		var ev api.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			return api.Event{}, e.nonsense("a line that is no event", err)
		}
		e.lost.calm()
		if ev.Seq > e.last {
			e.last = ev.Seq
			return ev, nil
		}
	}
}

var errLongLine = errors.New("line too long")

// line reads one whole line without its end. A line cut off by a lost connection is dropped; the event comes again.
func (e *Events) line() ([]byte, error) {
	var line []byte
	for {
		part, err := e.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxEventLine:
			return nil, errLongLine
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		}
		return bytes.TrimSpace(line), nil
	}
}

func (e *Events) connect() error {
	q := url.Values{"after": {strconv.FormatInt(e.last, 10)}}
	if e.follow {
		q.Set("follow", "true")
	}
	resp, err := e.c.open(e.ctx, request{method: http.MethodGet, path: api.PathEvents, query: q, accept: api.EventsType})
	if err != nil {
		return err
	}
	e.body, e.lines, e.opened = resp.Body, bufio.NewReaderSize(resp.Body, 32<<10), time.Now()
	return nil
}

func (e *Events) reconnect() error {
	err := e.connect()
	if err == nil || !passing(err) {
		return err
	}
	return e.lost.worn(e.ctx, err)
}

// interrupted decides what the end of a connection means: nil to go on.
func (e *Events) interrupted(err error) error {
	_ = e.body.Close() // a read-only stream: nothing is lost by it
	e.body = nil
	if cause := context.Cause(e.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) && !e.follow {
		return io.EOF
	}
	if time.Since(e.opened) > steady {
		e.lost.calm()
	}
	return e.lost.worn(e.ctx, e.c.socketError(err))
}

func (e *Events) nonsense(detail string, err error) error {
	return &ProtocolError{Call: "GET " + api.PathEvents, Detail: detail, Err: err}
}
