package results

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"sync/atomic"
)

const (
	hashBatch     = 1 << 20  // the hasher runs when so much is new
	writebackStep = 32 << 20 // and has the disk begin with what it passed
)

// hasher computes the sha256 of the kept bytes beside the Writer, in runs of its own over what is new. It stays in the
// head, whose bytes never change; the rest is hashed at the end, when it is known what stays.
type hasher struct {
	r      *Reader // of the run, or of Close when there is none
	sum    hash.Hash
	done   chan struct{} // closed at the end of the newest run; nil before the first. Guarded by Writer.mu
	cancel context.CancelFunc
	pos    atomic.Int64 // the run's place
	synced int64
}

func (h *hasher) init(s *stream) {
	h.r, h.sum = newReader(s, 0), sha256.New()
	h.r.stop = s.disk.lay.head
}

// kick starts a run when there is enough to do and none goes on. The Writer's mutex is held.
func (h *hasher) kick(v *view) {
	if min(v.end.pos, h.r.stop)-h.pos.Load() < hashBatch || h.running() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.done, h.cancel = make(chan struct{}), cancel
	go func() {
		defer close(h.done)
		_ = h.run(ctx) // Close goes on from the same place and meets the same error
	}()
}

func (h *hasher) running() bool {
	if h.done == nil {
		return false
	}
	select {
	case <-h.done:
		h.cancel()
		return false
	default:
		return true
	}
}

// run hashes what is there.
func (h *hasher) run(ctx context.Context) error {
	defer h.r.release()
	for {
		rec, err := h.r.Next(ctx, false)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Kind == KindStdout || rec.Kind == KindStderr {
			h.sum.Write(rec.Payload)
		}
		pos := min(h.r.pos, h.r.s.disk.lay.head)
		h.pos.Store(pos)
		if pos-h.synced >= writebackStep {
			startWriteback(h.r.s.disk.f, pageSize+h.synced, pos-h.synced)
			h.synced = pos
		}
	}
}

// wait waits for a run that goes on.
func (h *hasher) wait(ctx context.Context) error {
	if h.done == nil {
		return nil
	}
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stopNow ends a run and waits for it; it looks at its context before each record.
func (h *hasher) stopNow() {
	if h.done != nil {
		h.cancel()
		<-h.done
	}
}

// finish hashes all the rest.
func (h *hasher) finish(ctx context.Context) (sum [32]byte, err error) {
	if err := h.wait(ctx); err != nil {
		return sum, err
	}
	h.r.stop = everything
	if err := h.run(ctx); err != nil {
		return sum, err
	}
	return [32]byte(h.sum.Sum(nil)), nil
}
