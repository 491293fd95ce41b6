// Package client speaks the API of the sandboxd daemon over its unix socket: submit jobs, follow their output, wait
// for their results, cancel them.
//
//	c := client.New(client.Options{})
//	defer c.Close()
//	job, err := c.Submit(ctx, api.JobRequest{Command: []string{"echo", "hi"}})
//	result, err := c.WaitResult(ctx, job.ID)
//
// Errors are of three types: *Error is the daemon's own refusal or fault, with a stable code; *SocketError means the
// socket could not be used (no daemon, no permission, another product, connection lost); *ProtocolError means the
// daemon answered something this client does not understand. A context that ends returns its cause.
//
// Waiting calls (WaitResult, Stream, Events, Lease) survive a restart of the daemon: a lost connection is made again
// for at most Options.RetryFor, and output resumes at the byte where it was cut.
package client

import (
	"context"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"sandboxd/api"
)

// DefaultSocket is where the daemon listens unless told otherwise.
const DefaultSocket = "/run/sandboxd/sandboxd.sock"

// SocketEnv names the environment variable that overrides DefaultSocket. In a job it names the job's own socket.
const SocketEnv = "SANDBOXD_SOCKET"

// Defaults of Options.
const (
	DefaultCallTimeout = 30 * time.Second
	DefaultRetryFor    = time.Minute
)

// Options of New. The zero value is good.
type Options struct {
	// Socket is the path of the daemon's socket. Empty: $SANDBOXD_SOCKET, else DefaultSocket.
	Socket string
	// CallTimeout bounds one plain call; waits and streams are not bounded by it.
	CallTimeout time.Duration
	// RetryFor bounds how long a daemon that went away in mid-call is waited for.
	RetryFor time.Duration
}

// Client talks to one daemon. Its methods may be called concurrently.
type Client struct {
	socket      string
	callTimeout time.Duration
	retryFor    time.Duration
	waitStep    time.Duration // how long one exchange of WaitResult waits at the daemon
	transport   *http.Transport
	http        *http.Client

	mu      sync.Mutex
	version *api.VersionInfo // set once the socket proved to be the daemon's; guarded by mu
}

// New makes a client. It does not connect: the first call does, and checks that the socket belongs to sandboxd.
func New(o Options) *Client {
	c := &Client{socket: o.Socket, callTimeout: o.CallTimeout, retryFor: o.RetryFor, waitStep: waitStep}
	if c.socket == "" {
		c.socket = os.Getenv(SocketEnv)
	}
	if c.socket == "" {
		c.socket = DefaultSocket
	}
	if c.callTimeout <= 0 {
		c.callTimeout = DefaultCallTimeout
	}
	if c.retryFor <= 0 {
		c.retryFor = DefaultRetryFor
	}
	c.transport = &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
		// How long the body of a request with onceHeard is held back.
		ExpectContinueTimeout: 2 * time.Second,
	}
	c.http = &http.Client{
		Transport: c.transport,
		// The API never redirects: a redirect is an answer this client does not understand.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Socket is the path this client talks to.
func (c *Client) Socket() string { return c.socket }

// Close drops idle connections. Calls under way are not cut; end them by their context.
func (c *Client) Close() { c.transport.CloseIdleConnections() }
