package server_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

// under makes a job a child of another one.
func under(parent job.Job) func(*job.Job) {
	return func(j *job.Job) { j.Parent, j.Root, j.Depth = parent.ID, parent.Root, parent.Depth+1 }
}

func named(name string) func(*job.Job) { return func(j *job.Job) { j.Spec.Name = name } }

// inside serves a socket of a job, as the daemon does for a slot, and returns its path.
func (r *rig) inside(j job.Job) string {
	r.Helper()
	dir := filepath.Join(r.dir, string(j.ID))
	path := filepath.Join(dir, "api.sock")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		r.Fatal(err)
	}
	s, err := server.ListenJob(server.JobListenConfig{
		Path: path, GID: uint32(os.Getgid()), UID: new(uint32(os.Getuid())), Caller: job.JobCaller(j),
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = s.Close() })
	r.serve(s)
	return path
}

// asJob is a client inside a job.
func (r *rig) asJob(j job.Job) *client {
	r.Helper()
	return newClient(r.T, r.inside(j))
}

// operator fakes what the ledger knows and an operator orders, and notes who waits.
type operator struct {
	mu      sync.Mutex
	freezes []api.Freeze
	calls   []string
	fault   error
}

func (o *operator) note(call string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, call)
}

func (o *operator) noted() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.calls)
}

func (o *operator) Freeze(_ context.Context, c job.Caller, scope, name string) error {
	o.note("freeze " + scope + " " + name)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.freezes = append(o.freezes, api.Freeze{Scope: scope, Name: name, By: c.Principal, Since: 5})
	return o.fault
}

func (o *operator) Thaw(_ context.Context, _ job.Caller, scope, name string) error {
	o.note("thaw " + scope + " " + name)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.freezes = slices.DeleteFunc(o.freezes, func(f api.Freeze) bool { return f.Scope == scope && f.Name == name })
	return o.fault
}

func (o *operator) Frozen(context.Context) ([]api.Freeze, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.freezes), o.fault
}

func (o *operator) Budget(_ context.Context, ids []job.ID) (map[job.ID][]api.BudgetLine, error) {
	out := map[job.ID][]api.BudgetLine{}
	for _, id := range ids {
		out[id] = []api.BudgetLine{{Dimension: "cpu_ms", Limit: new(int64(100)), Spent: 30, Granted: 20, Left: new(int64(50))}}
	}
	return out, o.fault
}

func (o *operator) Denials(context.Context, job.ID) ([]job.Denial, int, error) {
	return []job.Denial{{Kind: "delegation", Code: job.CodeNotSubset, Field: "limits.memory", Detail: "more than its parent has", TimeMS: 7}}, 3, o.fault
}

func (o *operator) Wait(ctx context.Context, c job.Caller, on job.ID) (context.Context, func()) {
	call := c.Principal + " on " + string(on)
	o.note("wait " + call)
	blocked, deny := context.WithCancelCause(ctx)
	if o.fault != nil {
		deny(o.fault)
	}
	return blocked, func() { o.note("release " + call); deny(nil) }
}

// withOperator gives a server all of it.
func withOperator(o *operator) func(*server.Config) {
	return func(c *server.Config) { c.Accounts, c.Freezer, c.Waiter = o, o, o }
}
