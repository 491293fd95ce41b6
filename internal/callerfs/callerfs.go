// Package callerfs opens host paths that callers name, with the caller's own rights and under a deadline, in a helper
// process of its own: a hung file system can stop a helper but never the daemon. From then on only the descriptor the
// helper returned is used.
package callerfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Bounds.
const (
	// Deadline of one open.
	Deadline = 2 * time.Second
	// MaxStuck is how many helpers of one uid may hang before that uid's paths are refused. No more of them run at
	// once, so that many requests together cannot leave more behind.
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
	rules  rules

	mu    sync.Mutex
	lines map[uint32]*line // by uid, while anybody stands in them
	alive int              // helpers that were started and not reaped
	idle  chan struct{}    // closed when alive falls to 0; nil while it is
}

// HelperArg is the first argument that makes the daemon's binary a helper; see HelperMain.
const HelperArg = "callerfs-helper"

// New makes an Opener whose helper is this very binary, or the given one.
func New(r Rules, binary ...string) *Opener {
	if len(binary) == 0 {
		binary = []string{"/proc/self/exe", HelperArg}
	}
	return &Opener{binary: binary, rules: r.resolve(), lines: map[uint32]*line{}}
}

// Open opens a path as the caller would, without following magic links, and holds it to the rules. The error is a
// *Refusal where the caller or the path is at fault. It comes within Deadline.
func (o *Opener) Open(ctx context.Context, c Caller, path string) (*File, error) {
	if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 {
		return nil, &Refusal{path, "is not an absolute path"}
	}
	timed, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	h, err := o.enter(timed, c.UID)
	if err != nil {
		return nil, o.why(ctx, path, err)
	}
	fd, err := h.ask(timed, request{UID: c.UID, GID: c.GID, Groups: c.Groups, Path: []byte(path)})
	if err != nil {
		return nil, o.why(ctx, path, err)
	}
	f, err := identify(fd, path)
	if err != nil {
		return nil, err
	}
	if err := o.rules.check(f, c); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// why turns a deadline into a refusal. A caller who went away gets its own cancel back.
func (o *Opener) why(ctx context.Context, path string, err error) error {
	var stuck errStuck
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("opening %q: %w", path, context.Cause(ctx))
	case errors.As(err, &stuck):
		return &Refusal{path, fmt.Sprintf("is not looked at: %s", stuck.Error())}
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return &Refusal{path, fmt.Sprintf("did not answer within %s; its file system hangs", Deadline)}
	}
	return err
}

// Wait waits until no helper is left, which are killed when their requests are over; one that cannot be killed is not
// waited for beyond ctx.
func (o *Opener) Wait(ctx context.Context) error {
	o.mu.Lock()
	idle := o.idle
	o.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
