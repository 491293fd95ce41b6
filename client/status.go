package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sandboxd/api"
)

// Version asks who listens on the socket, once: later calls return what the first one learned. A socket of another
// product, or a daemon of another API version, is a *SocketError of kind ErrForeign.
func (c *Client) Version(ctx context.Context) (*api.VersionInfo, error) {
	c.mu.Lock()
	known := c.version
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	v, err := c.askVersion(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.version = v
	c.mu.Unlock()
	return v, nil
}

func (c *Client) askVersion(ctx context.Context) (*api.VersionInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, versionTimeout, ErrNoAnswer)
	defer cancel()
	var v api.VersionInfo
	err := c.paced(ctx, func() error {
		_, err := c.exchange(ctx, request{method: http.MethodGet, path: api.PathVersion}, &v)
		return err
	})
	var lost *SocketError
	var odd *ProtocolError
	switch {
	case errors.As(err, &lost) && lost.Kind == ErrLost && !cut(err):
		return nil, c.foreign("what listens on %q does not speak HTTP, so it is not sandboxd", c.socket)
	case errors.As(err, &odd):
		return nil, c.foreign("what listens on %q is not sandboxd", c.socket)
	case err != nil:
		return nil, err
	case v.Product != api.Product:
		return nil, c.foreign("%q belongs to %.40q, not to sandboxd", c.socket, v.Product)
	case v.API != api.Version:
		return nil, c.foreign("the daemon on %q speaks API version %d, this client version %d", c.socket, v.API, api.Version)
	}
	return &v, nil
}

func (c *Client) foreign(format string, args ...any) *SocketError {
	return &SocketError{
		Kind: ErrForeign, Socket: c.socket, Detail: fmt.Sprintf(format, args...),
		Hint: "set " + SocketEnv + " to the daemon's socket (default " + DefaultSocket + ")",
	}
}

// Health asks how the daemon and its engine are.
func (c *Client) Health(ctx context.Context) (*api.Health, error) {
	var h api.Health
	if _, err := c.call(ctx, request{method: http.MethodGet, path: api.PathHealth}, nil, &h); err != nil {
		return nil, err
	}
	return &h, nil
}

// Profiles lists the envelopes the operator offers.
func (c *Client) Profiles(ctx context.Context) ([]api.Profile, error) {
	var l api.ProfileList
	if _, err := c.call(ctx, request{method: http.MethodGet, path: api.PathProfiles}, nil, &l); err != nil {
		return nil, err
	}
	return l.Profiles, nil
}
