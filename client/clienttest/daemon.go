// Package clienttest is a daemon for tests of clients: it speaks the API on a unix socket, runs no container, and
// breaks on demand. What a job does is told by its command (run.go): ["echo", "hi"], ["exit", "3"], ["hang"], …
package clienttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"sandboxd/api"
)

// Faults are what the daemon does wrong. Set them with Daemon.Set.
type Faults struct {
	Product     string        // in the version reply; empty is api.Product
	EngineDown  bool          // the engine does not answer
	Draining    bool          // jobs are refused
	CutStream   int           // cut a stream's connection after so many bytes on the wire; 0 never
	CutSubmits  int           // so many submits are carried out and not answered
	CutEvents   int           // cut the events' connection after so many events
	Garbage     bool          // every reply is nonsense
	BadRecords  bool          // streams are nonsense
	NoEndRecord bool          // streams end without one
	Overlap     uint64        // a resumed stream begins so many bytes too early
	LeaseGrace  time.Duration // default 200 ms
	QueuedFor   time.Duration // how long jobs stay queued
	QuickNotYet bool          // results are answered with "not yet" at once
	PutOff      int           // so many requests are refused for coming too soon
	MuteWaits   int           // so many waits for a result are not answered in time
	NoFreezing  bool          // freezing is refused
}

// Daemon is one fake daemon. Its jobs survive Stop and Start, as the real one's do.
type Daemon struct {
	socket string
	jobWG  sync.WaitGroup

	mu       sync.Mutex
	faults   Faults
	server   *http.Server
	served   chan struct{}
	jobs     []*fakeJob // in order of birth
	byKey    map[string]*fakeJob
	events   []api.Event
	changed  chan struct{} // closed and replaced at every change of anything
	submits  int
	streams  int
	blocked  int // leases held by clients that do nothing else
	blocks   int // of those, ever
	freezes  []api.Freeze
	shutdown bool
}

// Start serves a fake daemon on socket. Close it.
func Start(socket string) (*Daemon, error) {
	d := &Daemon{socket: socket, byKey: map[string]*fakeJob{}, changed: make(chan struct{})}
	return d, d.Start()
}

// Start serves again after Stop.
func (d *Daemon) Start() error {
	l, err := net.Listen("unix", d.socket)
	if err != nil {
		return fmt.Errorf("fake daemon: %w", err)
	}
	server := &http.Server{Handler: d.routes()}
	served := make(chan struct{})
	d.mu.Lock()
	d.server, d.served = server, served
	d.mu.Unlock()
	go func() {
		defer close(served)
		_ = server.Serve(l) // ends with Stop
	}()
	return nil
}

// Stop cuts every connection, as a crash would, and leaves the jobs running.
func (d *Daemon) Stop() {
	d.mu.Lock()
	server, served := d.server, d.served
	d.server = nil
	d.mu.Unlock()
	if server != nil {
		_ = server.Close()
		<-served
	}
}

// Close stops the daemon and ends its jobs.
func (d *Daemon) Close() {
	d.Stop()
	d.mu.Lock()
	d.shutdown = true
	d.touchLocked()
	d.mu.Unlock()
	d.jobWG.Wait()
}

// Set changes the faults.
func (d *Daemon) Set(change func(*Faults)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.faults)
}

// Submits is how many job requests arrived, Streams how many streams were opened, Jobs how many jobs there are.
func (d *Daemon) Submits() int { d.mu.Lock(); defer d.mu.Unlock(); return d.submits }

// Streams is how many streams were opened.
func (d *Daemon) Streams() int { d.mu.Lock(); defer d.mu.Unlock(); return d.streams }

// Jobs is how many jobs there are.
func (d *Daemon) Jobs() int { d.mu.Lock(); defer d.mu.Unlock(); return len(d.jobs) }

// Blocked is how many leases are held by clients that do nothing else until the job is done.
func (d *Daemon) Blocked() int { d.mu.Lock(); defer d.mu.Unlock(); return d.blocked }

// Blocks is how many such leases there were.
func (d *Daemon) Blocks() int { d.mu.Lock(); defer d.mu.Unlock(); return d.blocks }

// touchLocked wakes everybody who waits for a change; mu is held.
func (d *Daemon) touchLocked() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// until waits, under mu, for ready. It returns false when the request or the daemon ends first.
func (d *Daemon) until(done <-chan struct{}, ready func() bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !ready() {
		if d.shutdown {
			return false
		}
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-changed:
		case <-done:
			d.mu.Lock()
			return ready()
		}
		d.mu.Lock()
	}
	return true
}

func (d *Daemon) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+api.PathJobs, d.submit)
	mux.HandleFunc("GET "+api.PathJobs, d.list)
	mux.HandleFunc("GET "+api.PathJob, d.withJob(d.show))
	mux.HandleFunc("POST "+api.PathCancel, d.withJob(d.cancel))
	mux.HandleFunc("GET "+api.PathResult, d.withJob(d.result))
	mux.HandleFunc("GET "+api.PathStream, d.withJob(d.stream))
	mux.HandleFunc("PUT "+api.PathStdin, d.withJob(d.stdin))
	mux.HandleFunc("GET "+api.PathLease, d.withJob(d.lease))
	mux.HandleFunc("GET "+api.PathTree, d.withJob(d.tree))
	mux.HandleFunc("GET "+api.PathFreeze, d.orders(nil))
	mux.HandleFunc("POST "+api.PathFreeze, d.orders(d.freezeLocked))
	mux.HandleFunc("POST "+api.PathThaw, d.orders(d.thawLocked))
	mux.HandleFunc("GET "+api.PathEvents, d.listEvents)
	mux.HandleFunc("GET "+api.PathProfiles, d.profiles)
	mux.HandleFunc("GET "+api.PathVersion, d.version)
	mux.HandleFunc("GET "+api.PathHealth, d.health)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.now().Garbage {
			_, _ = w.Write([]byte("<html>It works!</html>"))
			return
		}
		if d.putOff() {
			refuse(w, api.Problem{Status: 429, Code: "rate_limit", Detail: "a job may ask 50 times a second", ExitCode: 120})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (d *Daemon) putOff() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults.PutOff--
	return d.faults.PutOff >= 0
}

func (d *Daemon) now() Faults {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faults
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", api.JSONType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, p api.Problem) {
	p.Title = http.StatusText(p.Status)
	w.Header().Set("Content-Type", api.ProblemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

func (d *Daemon) version(w http.ResponseWriter, _ *http.Request) {
	product := d.now().Product
	if product == "" {
		product = api.Product
	}
	reply(w, http.StatusOK, api.VersionInfo{Product: product, Version: "0.0-fake", API: api.Version, Instance: "fake"})
}

func (d *Daemon) health(w http.ResponseWriter, _ *http.Request) {
	h := api.Health{Status: "ok", Engine: api.EngineHealth{Up: true, Version: "28.5.2", API: "1.51"}, MaxRunning: 8, UptimeMS: 61_000}
	if d.now().EngineDown {
		h.Status, h.Engine = "degraded", api.EngineHealth{Error: "cannot connect to /var/run/docker.sock"}
	}
	reply(w, http.StatusOK, h)
}

func (d *Daemon) profiles(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, api.ProfileList{Profiles: []api.Profile{
		{Name: "default", Description: "no network, small", Fields: []api.EnvelopeField{
			{Field: "memory", Value: "512MiB", Origin: "builtin"}, {Field: "timeout", Value: "10m0s", Origin: "profile default"},
		}},
		{Name: "build", Description: "with \x1b[31mred\x1b[0m words"},
	}})
}

var errCut = errors.New("cut on purpose")

// limited passes n bytes and then fails.
type limited struct {
	w http.ResponseWriter
	n int
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) <= l.n {
		l.n -= len(p)
		return l.w.Write(p)
	}
	_, _ = l.w.Write(p[:l.n])
	l.n = 0
	return 0, errCut
}
