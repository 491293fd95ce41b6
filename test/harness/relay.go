package harness

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// engineSocket is where the engine of the tests listens.
const engineSocket = "/var/run/docker.sock"

// Relay stands between a daemon and the engine, so that a test can take the engine away without touching it.
type Relay struct {
	t    testing.TB
	Path string // the socket the daemon is told

	mu    sync.Mutex
	l     net.Listener
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// NewRelay makes a relay that is down.
func NewRelay(t testing.TB) *Relay {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "sbxr-")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{t: t, Path: filepath.Join(dir, "engine.sock"), conns: map[net.Conn]bool{}}
	t.Cleanup(func() { r.Down(); _ = os.RemoveAll(dir) })
	return r
}

// Up lets the engine be reached.
func (r *Relay) Up() {
	r.t.Helper()
	l, err := net.Listen("unix", r.Path)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	r.l = l
	r.mu.Unlock()
	r.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.carry(c) })
		}
	})
}

// Down cuts every connection and refuses new ones.
func (r *Relay) Down() {
	r.mu.Lock()
	if r.l != nil {
		_ = r.l.Close()
		r.l = nil
	}
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *Relay) carry(c net.Conn) {
	e, err := net.Dial("unix", engineSocket)
	if err != nil {
		_ = c.Close()
		return
	}
	r.mu.Lock()
	r.conns[c], r.conns[e] = true, true
	r.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, e}, {e, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].(*net.UnixConn).CloseWrite()
		})
	}
	both.Wait()
	r.mu.Lock()
	delete(r.conns, c)
	delete(r.conns, e)
	r.mu.Unlock()
	_ = c.Close()
	_ = e.Close()
}
