package sandbox

import (
	"context"
	"sync"
	"time"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// poolFill bounds the making of one warm slot.
const poolFill = time.Minute

// Pool keeps slots ready before anybody asks for them, each fresh and used once, so that a job starts without waiting
// for the engine. A warm slot fits every job of its kind: what differs otherwise (cpu, memory, pids) is written to the
// cgroups at hand-over. Jobs that bind host paths have no kind, for binds are made at creation.
type Pool struct {
	// Constant after NewPool.
	s     *Sandbox
	size  int           // slots ready at once, over all kinds
	idle  time.Duration // a slot nobody took by then is removed
	spare func() bool   // whether the host has a place to spare; asked before a fill
	fault func(error)   // told of what failed; a pool's faults cost time and nothing else

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	ready   []warm // oldest first
	filling int
}

type warm struct {
	kind kind
	slot *Slot
	at   time.Time
}

// kind is everything of a slot that cannot be changed at hand-over.
type kind struct {
	image, runtime      string
	nofile              int64
	tmp, home, out, ino int64
	homeExec            bool
}

func warmKind(p envelope.Posture) kind {
	return kind{image: p.ImageID, runtime: p.Runtime, nofile: p.Nofile, tmp: p.TmpBytes, home: p.HomeBytes, out: p.OutBytes, ino: p.Inodes, homeExec: p.HomeExec}
}

// NewPool makes a pool; a size of 0 keeps nothing warm. It fills when it is told what is wanted.
func NewPool(s *Sandbox, size int, idle time.Duration, spare func() bool, fault func(error)) *Pool {
	p := &Pool{s: s, size: size, idle: idle, spare: spare, fault: fault}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Take gives a warm slot of the request's kind to its job, or nil. The caller hands over at once; a slot that died
// meanwhile shows then.
func (p *Pool) Take(ctx context.Context, req Request) *Slot {
	if len(req.Binds) > 0 {
		return nil
	}
	k := warmKind(req.Posture)
	p.mu.Lock()
	var found *Slot
	for i, w := range p.ready {
		if w.kind == k {
			found = w.slot
			p.ready = append(p.ready[:i:i], p.ready[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	if found == nil {
		return nil
	}
	if err := found.assign(ctx, req.Job, req.Attempt, req.Files); err != nil {
		p.fault(err)
		p.remove(context.WithoutCancel(ctx), found)
		return nil
	}
	return found
}

// Want says that more jobs of this request's kind may come. It fills in the background while the host has a place to
// spare.
func (p *Pool) Want(req Request) {
	if len(req.Binds) > 0 || req.Image.ID == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.size == 0 || p.filling+len(p.ready) >= p.size || !p.spare() {
		return
	}
	p.filling++
	p.work.Add(1)
	go p.fill(Request{Slot: NewSlotName(), Posture: req.Posture, Image: req.Image})
}

func (p *Pool) fill(req Request) {
	defer p.work.Done()
	ctx, cancel := context.WithTimeout(p.ctx, poolFill)
	defer cancel()
	slot, err := p.s.Fill(ctx, req)
	p.mu.Lock()
	p.filling--
	keep := err == nil && !p.closed
	if keep {
		p.ready = append(p.ready, warm{warmKind(req.Posture), slot, time.Now()})
	}
	p.mu.Unlock()
	switch {
	case err != nil && p.ctx.Err() == nil:
		p.fault(err)
	case err == nil && !keep:
		p.remove(context.WithoutCancel(p.ctx), slot)
	}
}

// Expire removes the slots nobody took in time, and those whose init is gone. To be called now and then.
func (p *Pool) Expire(ctx context.Context) {
	p.mu.Lock()
	var kept []warm
	var old []*Slot
	for _, w := range p.ready {
		if time.Since(w.at) > p.idle || !w.slot.init.alive() {
			old = append(old, w.slot)
		} else {
			kept = append(kept, w)
		}
	}
	p.ready = kept
	p.mu.Unlock()
	for _, s := range old {
		p.remove(ctx, s)
	}
}

// Close removes the warm slots, all at once, and waits for fills under way; what ctx cuts short the next daemon removes.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	ready := p.ready
	p.ready = nil
	p.mu.Unlock()
	p.cancel()
	for _, w := range ready {
		p.work.Go(func() { p.remove(ctx, w.slot) })
	}
	p.work.Wait()
	return nil
}

func (p *Pool) remove(ctx context.Context, s *Slot) {
	ctx, cancel := context.WithTimeout(ctx, p.s.cfg.CleanupTimeout)
	defer cancel()
	if err := s.Remove(ctx); err != nil {
		p.fault(err)
	}
}

// assign gives a warm slot to its job: files into its directory, the job's id on its record.
func (sl *Slot) assign(ctx context.Context, id job.ID, attempt int, files map[string][]byte) error {
	if err := checkFiles(files); err != nil {
		return err
	}
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.closed {
		return ErrClosed
	}
	if err := putFiles(sl.rec.Dir, sl.rec.UID, files); err != nil {
		return err
	}
	sl.rec.Job, sl.rec.Attempt = id, attempt
	return sl.s.record(ctx, sl.rec)
}
