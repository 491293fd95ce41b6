package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"sandboxd/api"
	"sandboxd/internal/admission"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
	"sandboxd/internal/store"
)

// daemon fakes everything behind the server, in memory.
type daemon struct {
	mu       sync.Mutex
	jobs     map[job.ID]job.Job
	keys     map[string]job.ID // idempotency
	done     map[job.ID]chan struct{}
	noHints  bool // Done channels never fire
	cancels  []cancelled
	requests []admission.Request
	streams  map[job.ID]*fakeStream
	stdins   map[job.ID]*fakeStdin
	eventLog []store.Event
	fault    error // returned by every read
	panics   bool
}

type cancelled struct {
	By     string
	ID     job.ID
	Kill   bool
	Reason job.Reason
}

func newDaemon() *daemon {
	return &daemon{
		jobs: map[job.ID]job.Job{}, keys: map[string]job.ID{}, done: map[job.ID]chan struct{}{},
		streams: map[job.ID]*fakeStream{}, stdins: map[job.ID]*fakeStdin{},
	}
}

// add puts a job in, with what matters changed by the functions.
func (d *daemon) add(owner uint32, change ...func(*job.Job)) job.Job {
	id, err := job.NewID()
	if err != nil {
		panic(err)
	}
	c := job.HostCaller(owner, owner, nil, 1, false)
	j := job.Job{
		ID: id, Root: id, Owner: c.Principal, OwnerUID: owner, State: job.Queued, Node: "local",
		Spec:  job.Spec{Command: []string{"true"}, Image: "alpine", ImageID: "sha256:1", Profile: "default", Workdir: "/", Result: "exit"},
		Times: job.Times{Queued: 1},
	}
	for _, f := range change {
		f(&j)
	}
	d.put(j)
	return j
}

func (d *daemon) put(j job.Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jobs[j.ID] = j
	if d.done[j.ID] == nil {
		d.done[j.ID] = make(chan struct{})
	}
	if d.streams[j.ID] == nil {
		d.streams[j.ID] = newFakeStream()
	}
}

// finish ends a job with success.
func (d *daemon) finish(id job.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finishLocked(id, job.Outcome{Status: job.Success, ExitCode: new(0)})
}

func (d *daemon) finishLocked(id job.ID, o job.Outcome) {
	j := d.jobs[id]
	if j.State == job.Done {
		return
	}
	j.State, j.Outcome, j.Result = job.Done, &o, &job.Result{Summary: "fine"}
	d.jobs[id] = j
	d.streams[id].end()
	if !d.noHints {
		close(d.done[id])
	}
}

func (d *daemon) Submit(_ context.Context, c job.Caller, r admission.Request) (job.Job, bool, error) {
	d.mu.Lock()
	d.requests = append(d.requests, r)
	if r.IdempotencyKey != "" {
		if id, ok := d.keys[c.Principal+r.IdempotencyKey]; ok {
			defer d.mu.Unlock()
			return d.jobs[id], false, nil
		}
	}
	d.mu.Unlock()
	if len(r.Command) == 0 {
		return job.Job{}, false, job.Errorf(job.CodeInvalid, "command", "is empty; give the program and its arguments")
	}
	j := d.add(c.UID, func(j *job.Job) {
		if c.Job != "" {
			j.Parent, j.Root = c.Job, c.Job
		}
		j.Spec.Command, j.Spec.Name, j.Spec.Labels, j.Spec.Lease, j.Spec.Env = r.Command, r.Name, r.Labels, r.Lease, r.Env
		j.IdempotencyKey = r.IdempotencyKey
		if r.StdinStream {
			j.Spec.Stdin = job.StdinStream
		}
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.IdempotencyKey != "" {
		d.keys[c.Principal+r.IdempotencyKey] = j.ID
	}
	return j, true, nil
}

func (d *daemon) Cancel(_ context.Context, c job.Caller, id job.ID, kill bool, reason job.Reason) (job.Job, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := d.jobs[id]
	if j.State == job.Done {
		return job.Job{}, job.Errorf(job.CodeConflict, "", "the job is done")
	}
	d.cancels = append(d.cancels, cancelled{c.Principal, id, kill, reason})
	if j.CancelReason == "" {
		j.CancelReason = reason
	}
	j.CancelKill = j.CancelKill || kill
	d.jobs[id] = j
	if j.State == job.Queued {
		d.finishLocked(id, job.Outcome{Status: job.Cancelled, Reason: j.CancelReason})
	}
	return d.jobs[id], nil
}

func (d *daemon) allCancels() []cancelled {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.cancels)
}

func (d *daemon) Done(id job.ID) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done[id]
}

func (d *daemon) Position(id job.ID) int {
	queue, _ := d.Queued(context.Background())
	return 1 + slices.IndexFunc(queue, func(it store.QueueItem) bool { return it.ID == id })
}

func (d *daemon) Stdin(ctx context.Context, id job.ID) (io.WriteCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.jobs[id].State; s != job.Running {
		return nil, job.Errorf(job.CodeConflict, "stdin", "the job does not run")
	}
	s := &fakeStdin{ctx: ctx, takes: make(chan []byte), closed: make(chan struct{})}
	d.stdins[id] = s
	return s, nil
}

// stdin waits until the server has opened the standard input of a job.
func (d *daemon) stdin(id job.ID) *fakeStdin {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stdins[id]
}

// fakeStdin is a command that takes input only when the test does.
type fakeStdin struct {
	ctx    context.Context
	takes  chan []byte
	closed chan struct{}
	deaf   atomic.Bool // the command reads no more
}

func (s *fakeStdin) Write(b []byte) (int, error) {
	if s.deaf.Load() {
		return 0, errors.New("reads no more")
	}
	select {
	case s.takes <- slices.Clone(b):
		return len(b), nil
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	}
}

func (s *fakeStdin) Close() error { close(s.closed); return nil }

func (d *daemon) Job(ctx context.Context, id job.ID) (job.Job, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readFault(ctx); err != nil {
		return job.Job{}, err
	}
	j, ok := d.jobs[id]
	if !ok {
		return job.Job{}, job.Errorf(job.CodeNotFound, "", "no such job")
	}
	return j, nil
}

func (d *daemon) readFault(ctx context.Context) error {
	if d.panics {
		panic("a reader that panics")
	}
	if d.fault != nil {
		return d.fault
	}
	return ctx.Err()
}

// sees is called with mu held.
func (d *daemon) sees(v store.Viewer, j job.Job) bool {
	if v.Job == "" {
		return v.All || v.Principal == j.Owner
	}
	for j.ID != v.Job && j.Parent != "" {
		j = d.jobs[j.Parent]
	}
	return j.ID == v.Job
}

func (d *daemon) Resolve(ctx context.Context, v store.Viewer, ref string) (job.Job, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readFault(ctx); err != nil {
		return job.Job{}, err
	}
	var named job.Job
	var begins []job.Job
	for _, j := range d.jobs {
		if !d.sees(v, j) {
			continue
		}
		if j.Spec.Name == ref && j.ID > named.ID {
			named = j
		}
		if len(ref) >= job.MinPrefix && strings.HasPrefix(string(j.ID), ref) {
			begins = append(begins, j)
		}
	}
	switch {
	case named.ID != "":
		return named, nil
	case len(begins) == 1:
		return begins[0], nil
	case len(begins) > 1:
		return job.Job{}, job.Errorf(job.CodeInvalid, "ref", "%q stands for %d jobs", ref, len(begins))
	}
	return job.Job{}, job.Errorf(job.CodeNotFound, "", "the store's own words, which must not show")
}

func (d *daemon) Jobs(ctx context.Context, v store.Viewer, f store.Filter) ([]job.Job, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readFault(ctx); err != nil {
		return nil, err
	}
	var out []job.Job
	for _, j := range d.jobs {
		match := d.sees(v, j) && (len(f.States) == 0 || slices.Contains(f.States, j.State)) &&
			(f.Name == "" || f.Name == j.Spec.Name) && (f.Root == "" || f.Root == j.Root) &&
			(f.Parent == "" || f.Parent == j.Parent) && (f.Before == "" || j.ID < f.Before)
		for k, want := range f.Labels {
			match = match && j.Spec.Labels[k] == want
		}
		if match {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b job.Job) int { return strings.Compare(string(b.ID), string(a.ID)) })
	return out[:min(len(out), f.Limit)], nil
}

func (d *daemon) Queued(context.Context) ([]store.QueueItem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []store.QueueItem
	for _, j := range d.jobs {
		if j.State == job.Queued {
			out = append(out, store.QueueItem{ID: j.ID})
		}
	}
	slices.SortFunc(out, func(a, b store.QueueItem) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out, nil
}

func (d *daemon) Unfinished(_ context.Context, node string) ([]job.Job, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []job.Job
	for _, j := range d.jobs {
		if j.State.Live() && j.Node == node {
			out = append(out, j)
		}
	}
	return out, nil
}

func (d *daemon) Events(ctx context.Context, v store.Viewer, after int64, limit int) ([]store.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.readFault(ctx); err != nil {
		return nil, err
	}
	var out []store.Event
	for _, e := range d.eventLog {
		mine := v.Job == "" && (v.All || e.Owner == v.Principal) || v.Job != "" && d.sees(v, d.jobs[e.Job])
		if e.Seq > after && mine && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (d *daemon) happen(owner, what string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range n {
		d.eventLog = append(d.eventLog, store.Event{Seq: int64(len(d.eventLog) + 1), Owner: owner, TimeMS: 5, Job: "j", Root: "r", Type: what})
	}
}

func (d *daemon) Counts(context.Context) (store.Counts, error) { return store.Counts{}, nil }

// fakeStream is the recorded stdout of a job.
type fakeStream struct {
	mu     sync.Mutex
	data   []byte
	ended  bool
	change chan struct{} // closed and made anew at each change
}

func newFakeStream() *fakeStream { return &fakeStream{change: make(chan struct{})} }

func (s *fakeStream) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = append(s.data, text...)
	s.wakeLocked()
}

func (s *fakeStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.wakeLocked()
}

func (s *fakeStream) wakeLocked() {
	close(s.change)
	s.change = make(chan struct{})
}

func (s *fakeStream) from(at uint64) (piece []byte, ended bool, change chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.data[min(at, uint64(len(s.data))):]), s.ended, s.change
}

func (d *daemon) stream(id job.ID) *fakeStream {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.streams[id]
}

func (d *daemon) Copy(ctx context.Context, id job.ID, w io.Writer, o server.StreamOptions, flush func()) error {
	s, at := d.stream(id), o.From
	for {
		piece, ended, change := s.from(at)
		if !o.Stdout {
			piece = nil
		}
		for len(piece) > 0 {
			n := min(len(piece), api.MaxRecord)
			if err := writePiece(w, at, piece[:n], o.Records); err != nil {
				return err
			}
			at += uint64(n)
			piece = piece[n:]
		}
		flush()
		if ended || !o.Follow {
			if ended && o.Records {
				return writeRecord(w, api.Record{Offset: at, Kind: api.KindEnd})
			}
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func writePiece(w io.Writer, at uint64, piece []byte, records bool) error {
	if records {
		return writeRecord(w, api.Record{Offset: at, Time: 1, Kind: api.KindStdout, Payload: piece})
	}
	_, err := w.Write(piece)
	return err
}

func writeRecord(w io.Writer, r api.Record) error {
	b := make([]byte, api.StreamHeaderSize, api.StreamHeaderSize+len(r.Payload))
	r.PutHeader(b, len(r.Payload))
	_, err := w.Write(append(b, r.Payload...))
	return err
}

func (d *daemon) Version() api.VersionInfo {
	return api.VersionInfo{Product: api.Product, Version: "0.0.0-test", API: api.Version, Instance: "i"}
}

func (d *daemon) Health(_ context.Context, c job.Caller) api.Health {
	return api.Health{Status: "ok", Engine: api.EngineHealth{Up: true}, Jobs: map[string]int{}, Notes: []string{"for " + c.Principal}}
}

func (d *daemon) Profiles() []api.Profile {
	return []api.Profile{{Name: "default", Fields: []api.EnvelopeField{{Field: "memory", Value: "512MiB", Origin: "default"}}}}
}

func (d *daemon) Slot(context.Context, job.ID) (*api.Slot, error) {
	return &api.Slot{ID: "s1", UID: 200000, State: "taken", Evidence: map[string]bool{"seccomp": true}}, nil
}

func (d *daemon) EnvelopeFields(json.RawMessage) []api.EnvelopeField {
	return []api.EnvelopeField{
		{Field: "memory", Value: "256MiB", Origin: "request"}, {Field: "trust", Value: "untrusted", Origin: "default"},
		{Field: "max_risk", Value: "safe", Origin: "default"},
	}
}
