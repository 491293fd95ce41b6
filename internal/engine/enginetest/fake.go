// Package enginetest holds Fake, an engine in memory whose faults are scripted, and Conformance, the suite that the fake
// and the real Docker both pass. It also builds the tiny images and sample containers such tests need.
package enginetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"sandboxd/internal/engine"
)

// StartHook stands in for a container's init. Start calls it before it returns; an error fails the start as a command
// that cannot be run. pid 0 lets the fake choose one that no process of the host has. run, where given, gets a goroutine
// of the fake until it returns the exit code; its context ends when the container is killed, removed or the fake closed.
// Without run the container lives until it is killed. The hook may call the fake.
type StartHook func(id string, c engine.Container) (pid int, run func(context.Context) int, err error)

// CreateHook sees each container before the fake stores it and may change it, as an engine does that drops a setting;
// what it returns are the engine's warnings.
type CreateHook func(c *engine.Container) (warnings []string)

// Call is one call the fake has got.
type Call struct {
	Op, Ref string
	Arg     string // a kill's signal
}

// Fake is an engine in memory. The fields are set before its first use; the methods are safe for concurrent use.
type Fake struct {
	Says     engine.Info // what Info returns; NewFake fills it
	OnStart  StartHook
	OnCreate CreateHook
	// CallTimeout ends a call that hangs, as the real client's deadline does; 30 s.
	CallTimeout time.Duration

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	runs   sync.WaitGroup // goroutines of running containers

	mu          sync.Mutex
	closed      bool
	down        bool
	containers  map[string]*record // by id
	images      map[string]*stored // by id
	published   map[string]engine.Image
	subscribers map[*subscriber]bool
	faults      []*Fault
	calls       []Call
	lastPid     int
}

// pidBase is above the largest pid a kernel gives, so that a stray signal meets nobody.
const pidBase = 1 << 22

// NewFake returns a running fake of a Docker 20.10 with cgroupfs on cgroup v2 and the runtimes runc and runsc.
func NewFake() *Fake {
	f := &Fake{
		Says: engine.Info{
			Version: "20.10.24", APIVersion: "1.41", CgroupDriver: "cgroupfs", CgroupVersion: 2, Runtimes: []string{"runc", "runsc"},
			DefaultRT: "runc", SecurityOpts: []string{"name=seccomp,profile=default"}, StorageDriver: "overlay2",
			RootDir: "/var/lib/docker", OSType: "linux", Arch: "x86_64",
		},
		CallTimeout: 30 * time.Second,
		containers:  map[string]*record{},
		images:      map[string]*stored{},
		published:   map[string]engine.Image{},
		subscribers: map[*subscriber]bool{},
		lastPid:     pidBase,
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// Close ends hanging calls and event streams, cancels running containers' hooks and waits for them.
func (f *Fake) Close() error {
	f.cancel()
	f.mu.Lock()
	f.closed = true
	f.unsubscribeAllLocked()
	f.mu.Unlock()
	f.runs.Wait()
	return nil
}

// Calls returns the calls so far, those that failed included, in their order.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// Count returns how many calls of op there were.
func (f *Fake) Count(op string) int {
	n := 0
	for _, c := range f.Calls() {
		if c.Op == op {
			n++
		}
	}
	return n
}

// Info returns what Says holds.
func (f *Fake) Info(ctx context.Context) (engine.Info, error) {
	err := f.call(ctx, Call{Op: engine.OpInfo}, func() error { return nil })
	if err != nil {
		return engine.Info{}, err
	}
	return f.Says, nil
}

// Ping fails while the fake is down.
func (f *Fake) Ping(ctx context.Context) error {
	return f.call(ctx, Call{Op: engine.OpPing}, func() error { return nil })
}

// call records one call, applies its faults, and runs effect under the lock.
func (f *Fake) call(ctx context.Context, c Call, effect func() error) error {
	fault, err := f.admit(ctx, c)
	if err == nil {
		f.mu.Lock()
		err = effect()
		f.mu.Unlock()
	}
	return f.answer(c, fault, err)
}

// admit records the call and waits out its faults; an error is one that kept the call from having any effect.
func (f *Fake) admit(ctx context.Context, c Call) (Fault, error) {
	f.mu.Lock()
	f.calls = append(f.calls, c)
	isUp := !f.closed && !f.down
	fault := f.faultLocked(c.Op)
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fault, f.ended(ctx, false)
	}
	if !isUp {
		return fault, because(engine.Unavailable, "no engine answers at fake://")
	}
	return fault, f.suffer(ctx, fault)
}

// answer adds call and reference to an error, and loses a good reply where that is the fault.
func (f *Fake) answer(c Call, fault Fault, err error) error {
	if err == nil && fault.LoseReply {
		err = &engine.Error{Kind: engine.TimedOut, Unsure: true, Err: fmt.Errorf("the reply to %s was lost", c.Op)}
	}
	if err == nil {
		return nil
	}
	var e *engine.Error
	if !errors.As(err, &e) {
		e = &engine.Error{Kind: engine.Internal, Err: err}
	}
	return &engine.Error{Kind: e.Kind, Op: c.Op, Ref: c.Ref, Unsure: e.Unsure, Err: e.Err}
}

// ended is the error of a call that ctx cut off.
func (f *Fake) ended(ctx context.Context, unsure bool) error {
	return &engine.Error{Kind: engine.TimedOut, Unsure: unsure, Err: &endedEarly{context.Cause(ctx), ctx.Err()}}
}

func because(kind engine.Kind, format string, args ...any) error {
	return &engine.Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// randomHex returns n random bytes in hex.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// endedEarly keeps the context's own error and its cause in the chain, as the real client does.
type endedEarly struct{ cause, plain error }

func (e *endedEarly) Error() string   { return e.cause.Error() }
func (e *endedEarly) Unwrap() []error { return []error{e.cause, e.plain} }
