package callerfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// line is where the requests of one uid stand before its helpers. A helper keeps its place until it is reaped, however
// long that takes.
type line struct {
	places chan struct{} // MaxStuck of them
	using  int           // requests and helpers that stand in it
	stuck  int           // helpers that outlived their request
}

// errStuck says that a uid has no helper to spare.
type errStuck struct{ uid uint32 }

func (e errStuck) Error() string {
	return fmt.Sprintf("%d earlier paths of uid %d still do not answer", MaxStuck, e.uid)
}

// helper is the right to run one, from enter until it is reaped.
type helper struct {
	o   *Opener
	uid uint32

	// Guarded by the opener's mutex.
	late bool // its request was given up
	gone bool // reaped
}

// enter waits for a place in the uid's line. It refuses at once where all places are held by helpers that hang.
func (o *Opener) enter(ctx context.Context, uid uint32) (*helper, error) {
	o.mu.Lock()
	l := o.lines[uid]
	if l == nil {
		l = &line{places: make(chan struct{}, MaxStuck)}
		o.lines[uid] = l
	}
	full := l.stuck >= MaxStuck
	l.using++
	o.mu.Unlock()
	if !full {
		select {
		case l.places <- struct{}{}:
			return &helper{o: o, uid: uid}, nil
		case <-ctx.Done():
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leaveLocked(uid)
	return nil, errStuck{uid}
}

func (o *Opener) leaveLocked(uid uint32) {
	l := o.lines[uid]
	if l.using--; l.using == 0 {
		delete(o.lines, uid)
	}
}

// ask runs the helper and returns what it opened. It does not wait for the helper's end. ctx carries the deadline.
func (h *helper) ask(ctx context.Context, r request) (int, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		h.reaped()
		return -1, err
	}
	defer ours.Close()
	cmd := exec.Command(h.o.binary[0], h.o.binary[1:]...)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Env = []string{}
	cmd.Dir = "/"
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		h.reaped()
		return -1, fmt.Errorf("starting the path helper: %w", err)
	}
	h.o.started()
	go func() {
		_ = cmd.Wait()
		h.reaped()
		h.o.ended()
	}()
	defer func() { _ = cmd.Process.Kill() }()
	defer context.AfterFunc(ctx, func() { _ = ours.SetDeadline(time.Unix(1, 0)) })()
	fd, err := exchange(ours, r)
	if errors.Is(err, os.ErrDeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		h.giveUp()
	}
	return fd, err
}

func (o *Opener) started() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.alive++; o.alive == 1 {
		o.idle = make(chan struct{})
	}
}

func (o *Opener) ended() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.alive--; o.alive == 0 {
		close(o.idle)
		o.idle = nil
	}
}

// giveUp counts a helper as stuck until it is reaped: it is killed, and the kernel may not let it die.
func (h *helper) giveUp() {
	h.o.mu.Lock()
	defer h.o.mu.Unlock()
	h.late = true
	if !h.gone {
		h.o.lines[h.uid].stuck++
	}
}

// reaped frees the helper's place.
func (h *helper) reaped() {
	h.o.mu.Lock()
	defer h.o.mu.Unlock()
	l := h.o.lines[h.uid]
	h.gone = true
	if h.late {
		l.stuck--
	}
	<-l.places
	h.o.leaveLocked(h.uid)
}
