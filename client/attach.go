package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"sandboxd/api"
)

// Stdin sends r to a job that was submitted with StdinStream, until r ends (then the command sees the end of its
// standard input) or the job no longer reads. It cannot be repeated: bytes that were on their way when a connection
// was cut are gone, and the cut is returned as an error. A read of r that is blocked outlives Stdin.
func (c *Client) Stdin(ctx context.Context, ref string, r io.Reader) error {
	path, err := jobPath(ref, api.PathStdin)
	if err != nil {
		return err
	}
	if _, err := c.Version(ctx); err != nil {
		return err
	}
	// The pipe stands between, because a transport waits for its reader, and r may be a silent terminal.
	body, w := io.Pipe()
	defer body.Close()
	readFailed := make(chan error, 1)
	go func() {
		_, err := io.Copy(w, r)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			readFailed <- err
		}
		_ = w.CloseWithError(err) // always nil
	}()
	req := request{method: http.MethodPut, path: path, contentType: api.BytesType, onceHeard: true}
	req.body = struct{ io.Reader }{body} // that a transport cannot close: what it has not read is sent by the next try
	err = c.paced(ctx, func() error {
		_, err := c.exchange(ctx, req, nil)
		return err
	})
	select {
	case read := <-readFailed:
		return fmt.Errorf("reading the standard input: %w", read)
	default:
		return err
	}
}

// Lease holds the lease of a job that was submitted with one, until the job is done (nil) or ctx ends. A connection
// that is lost is made again at once; the daemon cancels the job when it has been gone for lease_grace.
func (c *Client) Lease(ctx context.Context, ref string) error {
	return c.lease(ctx, ref, nil)
}

// LeaseAndWait is Lease for a caller that does nothing else until the job is done. Where the caller is itself a job,
// the daemon may lend its place to others, and then stops all of it, meanwhile.
func (c *Client) LeaseAndWait(ctx context.Context, ref string) error {
	return c.lease(ctx, ref, url.Values{"wait": {"true"}})
}

func (c *Client) lease(ctx context.Context, ref string, query url.Values) error {
	path, err := jobPath(ref, api.PathLease)
	if err != nil {
		return err
	}
	if _, err := c.Version(ctx); err != nil {
		return err
	}
	p := patience{limit: c.retryFor}
	for {
		opened := time.Now()
		err := c.holdLease(ctx, request{method: http.MethodGet, path: path, query: query})
		if err == nil {
			var done bool
			if done, err = c.isDone(ctx, ref); done {
				return nil
			}
		}
		if err != nil && !passing(err) {
			return err
		}
		if time.Since(opened) > steady {
			p.calm()
		}
		if err == nil {
			err = c.socketError(io.ErrUnexpectedEOF)
		}
		if err := p.worn(ctx, err); err != nil {
			return err
		}
	}
}

// holdLease holds one connection open; nil means that the daemon ended it in good order.
func (c *Client) holdLease(ctx context.Context, r request) error {
	resp, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return c.broken(ctx, err)
	}
	return nil
}

func (c *Client) isDone(ctx context.Context, ref string) (bool, error) {
	job, err := c.Job(ctx, ref)
	if err != nil {
		return false, err
	}
	return job.State == StateDone, nil
}
