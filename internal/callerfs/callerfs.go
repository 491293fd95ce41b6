// Package callerfs opens host paths that callers name, with the caller's own rights and under a deadline, in a helper
// process of its own: a hung file system can stop a helper but never the daemon. From then on only the descriptor the
// helper returned is used.
package callerfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Bounds.
const (
	// Deadline of one open.
	Deadline = 2 * time.Second
	// MaxStuck is how many helpers of one uid may hang before that uid's paths are refused.
	MaxStuck = 2
)

// Caller is whose rights count.
type Caller struct {
	UID    uint32
	GID    uint32
	Groups []uint32
}

// File is an opened path.
type File struct {
	*os.File        // O_PATH; the caller of Open closes it
	Dir      bool   // a directory, else a regular file
	Path     string // with links resolved, as it was when opened
	Owner    uint32
	Mode     uint32 // permission bits
}

// Refusal says why a path is not given out. Its text is one line for the caller.
type Refusal struct {
	Path string
	Why  string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%q %s", r.Path, r.Why) }

// Opener runs the helpers. Safe for concurrent use.
type Opener struct {
	// Constant after New.
	binary []string // the helper's argv
	rules  Rules

	mu    sync.Mutex
	stuck map[uint32]int // helpers that outlived their deadline, by uid
	wg    sync.WaitGroup
}

// HelperArg is the first argument that makes the daemon's binary a helper; see HelperMain.
const HelperArg = "callerfs-helper"

// New makes an Opener whose helper is this very binary, or the given one.
func New(r Rules, binary ...string) *Opener {
	if len(binary) == 0 {
		binary = []string{"/proc/self/exe", HelperArg}
	}
	return &Opener{binary: binary, rules: r, stuck: map[uint32]int{}}
}

// Open opens a path as the caller would, without following magic links, and holds it to the rules. The error is a
// *Refusal where the caller or the path is at fault.
func (o *Opener) Open(ctx context.Context, c Caller, path string) (*File, error) {
	o.mu.Lock()
	stuck := o.stuck[c.UID]
	o.mu.Unlock()
	if stuck >= MaxStuck {
		return nil, &Refusal{path, fmt.Sprintf("is not looked at: %d earlier paths of uid %d still do not answer", stuck, c.UID)}
	}
	ctx, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	f, err := o.ask(ctx, c, path)
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
			return nil, &Refusal{path, fmt.Sprintf("did not answer within %s; its file system hangs", Deadline)}
		}
		return nil, err
	}
	if err := o.rules.check(f, c); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Wait waits for helpers that were killed; one that cannot be killed is not waited for beyond ctx.
func (o *Opener) Wait(ctx context.Context) error {
	idle := make(chan struct{})
	go func() { o.wg.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask runs one helper and returns what it opened.
func (o *Opener) ask(ctx context.Context, c Caller, path string) (*File, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	cmd := exec.Command(o.binary[0], o.binary[1:]...)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = []string{}
	cmd.Dir = "/"
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		return nil, fmt.Errorf("starting the path helper: %w", err)
	}
	o.reap(cmd, c.UID)
	defer func() { _ = cmd.Process.Kill() }()
	if d, ok := ctx.Deadline(); ok {
		_ = ours.SetDeadline(d)
	}
	stop := context.AfterFunc(ctx, func() { _ = ours.SetDeadline(time.Now()) })
	defer stop()
	return exchange(ours, request{UID: c.UID, GID: c.GID, Groups: c.Groups, Path: path})
}

// reap waits for the helper beside the request, and counts it as stuck once its deadline is over.
func (o *Opener) reap(cmd *exec.Cmd, uid uint32) {
	o.wg.Add(1)
	go func() {
		defer o.wg.Done()
		late := false
		t := time.AfterFunc(Deadline+time.Second, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			late = true
			o.stuck[uid]++
		})
		_ = cmd.Wait()
		t.Stop()
		o.mu.Lock()
		defer o.mu.Unlock()
		if late {
			o.stuck[uid]--
		}
	}()
}
