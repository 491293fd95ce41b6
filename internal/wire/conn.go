package wire

import (
	"net"
	"time"
)

// Conn is one connection between init and daemon, as seen from one side. Reading is for one goroutine, sending for any.
// It starts no goroutine and sets no deadline of its own.
type Conn struct {
	net net.Conn
	*Reader
	*Writer
}

// NewConn wraps an open connection; side is the caller's own side. Its handshake is still to be done.
func NewConn(c net.Conn, side Side) *Conn {
	return &Conn{net: c, Reader: NewReader(c, side.other()), Writer: NewWriter(c, side, nil)}
}

// Close closes the connection and unblocks Next and Send.
func (c *Conn) Close() error { return c.net.Close() }

// SetDeadline bounds all later reads and writes. A frame must arrive whole before it, so a peer that sends one byte a
// minute is cut off.
func (c *Conn) SetDeadline(t time.Time) error { return c.net.SetDeadline(t) }

// SetReadDeadline bounds Next. Init sends a heartbeat every HeartbeatEvery, so a daemon may set it before every Next.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.net.SetReadDeadline(t) }

// SetWriteDeadline bounds Send.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.net.SetWriteDeadline(t) }

// NetConn is the connection below, for peer credentials. Reading or writing on it breaks the framing.
func (c *Conn) NetConn() net.Conn { return c.net }
