package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"sandboxd/api"
)

// maxReply bounds a JSON reply in bytes.
const maxReply = 64 << 20

// versionTimeout bounds the first exchange, which finds out who listens.
const versionTimeout = 10 * time.Second

// request is one exchange with the daemon.
type request struct {
	method, path string
	query        url.Values
	body         io.Reader
	contentType  string
	accept       string
	onceHeard    bool // the body is sent only once the daemon wants it, or after a while
}

func (r request) String() string { return r.method + " " + r.path }

// call makes one bounded exchange with JSON both ways; in and out may be nil. It returns the HTTP status.
func (c *Client) call(ctx context.Context, r request, in, out any) (int, error) {
	return c.callWithin(ctx, c.callTimeout, r, in, out)
}

func (c *Client) callWithin(ctx context.Context, limit time.Duration, r request, in, out any) (int, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return 0, fmt.Errorf("encoding the request: %w", err)
		}
		r.contentType = api.JSONType
	}
	if _, err := c.Version(ctx); err != nil {
		return 0, err
	}
	status := 0
	err := c.paced(ctx, func() (err error) {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrNoAnswer)
		defer cancel()
		if body != nil {
			r.body = bytes.NewReader(body)
		}
		status, err = c.exchange(ctx, r, out)
		return err
	})
	return status, err
}

// exchange sends r and decodes a 2xx answer into out.
func (c *Client) exchange(ctx context.Context, r request, out any) (int, error) {
	resp, err := c.open(ctx, r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return 0, c.broken(ctx, err)
	}
	if len(b) > maxReply {
		return 0, &ProtocolError{Call: r.String(), Detail: fmt.Sprintf("more than %d bytes", maxReply)}
	}
	if out == nil || len(b) == 0 && resp.StatusCode == http.StatusNoContent {
		return resp.StatusCode, nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return 0, &ProtocolError{Call: r.String(), Detail: "not the expected JSON", Err: err}
	}
	return resp.StatusCode, nil
}

// open sends r and returns a 2xx answer with its body unread. Every other answer is an error.
func (c *Client) open(ctx context.Context, r request) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: api.Product, RawQuery: r.query.Encode()}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), r.body)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	req.URL.Path = r.path
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	req.Header.Set("Accept", api.JSONType+", "+api.ProblemType)
	if r.onceHeard {
		req.Header.Set("Expect", "100-continue")
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept+", "+api.ProblemType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refusal(ctx, r, resp)
}

// refusal reads a problem reply.
func (c *Client) refusal(ctx context.Context, r request, resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return c.broken(ctx, err)
	}
	e := &Error{}
	if mediaType(resp) != api.ProblemType || json.Unmarshal(b, &e.Problem) != nil || e.Code == "" {
		return &ProtocolError{Call: r.String(), Detail: fmt.Sprintf("status %d without a problem document: %.80q", resp.StatusCode, b)}
	}
	if e.Status == 0 {
		e.Status = resp.StatusCode
	}
	return e
}

// broken turns a failed exchange into the error a caller sees: the context's cause, or what happened to the socket.
func (c *Client) broken(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ErrNoAnswer) {
		return cause
	}
	if refused := c.noDoor(err); refused != nil {
		return refused
	}
	e := c.socketError(err)
	if errors.Is(context.Cause(ctx), ErrNoAnswer) {
		e.Kind = ErrNoAnswer
		e.Detail = fmt.Sprintf("the daemon on %q does not answer", c.socket)
		e.Hint = "look at its log, or restart it"
	}
	return e
}

func mediaType(resp *http.Response) string {
	t, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}
