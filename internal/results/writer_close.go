package results

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"time"

	"sandboxd/internal/job"
)

// Close ends the stream: it waits for the sha256, brings everything to the disk, and gives readers the end record. After
// that the file never changes. When ctx ends first nothing is lost and Close may be called again; after it returned nil
// it returns the same again. An error of the disk while syncing is final.
func (w *Writer) Close(ctx context.Context) (job.StreamInfo, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.info != nil {
		return *w.info, nil
	}
	switch {
	case w.lost != nil:
		return job.StreamInfo{}, w.lost
	case errors.Is(w.err, ErrClosed):
		return job.StreamInfo{}, w.err
	}
	v := w.s.view
	if !v.ended {
		if err := w.end(ctx, &v); err != nil {
			return job.StreamInfo{}, err
		}
	}
	info := v.info()
	info.SHA256 = hex.EncodeToString(v.sha[:])
	w.info = &info
	w.release(fault(w.s.id, ErrEnded, "", nil))
	return info, nil
}

// end makes v the last view. The records are on the disk before the page calls them complete.
func (w *Writer) end(ctx context.Context, v *view) error {
	if w.err == nil {
		w.err = fault(w.s.id, ErrEnded, "", nil)
	}
	if err := w.seal(v); err != nil {
		return w.undo("write", err)
	}
	sum, err := w.hash.finish(ctx)
	if err != nil {
		return err
	}
	if err := w.sync(); err != nil {
		return err
	}
	v.ended, v.endTime, v.sha = true, time.Now().UnixNano(), sum
	if err := w.save(&v.state); err != nil {
		return diskFault(w.s.id, "write", err)
	}
	if err := w.sync(); err != nil {
		return err
	}
	if err := syncFolder(filepath.Dir(w.s.logs.path(w.s.id)), w.s.disk.ops); err != nil {
		return diskFault(w.s.id, "sync folder", err)
	}
	w.s.publish(v, nil)
	return nil
}

// sync remembers a failure: the kernel tells of it once, and what it dropped then is lost.
func (w *Writer) sync() error {
	if err := w.s.disk.ops.sync(w.s.disk.f); err != nil {
		w.lost = diskFault(w.s.id, "sync", err)
	}
	return w.lost
}

func syncFolder(dir string, ops *ops) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(ops.sync(f), f.Close())
}

// Commit stores the caller's place in init's frames together with how much of the streams had come by then. To be called
// before frames are acked: whatever came after the mark, init sends again to the next daemon, and the Writer of Reopen
// drops as many bytes of each stream as it already has.
func (w *Writer) Commit(m Mark) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	next := w.s.view
	next.committed, next.mark = true, m
	next.marked = [2]uint64{
		next.sums[0].Bytes - min(w.skip[0], next.sums[0].Bytes), next.sums[1].Bytes - min(w.skip[1], next.sums[1].Bytes)}
	if err := w.save(&next.state); err != nil {
		return diskFault(w.s.id, "write", err)
	}
	w.s.update(&next)
	return nil
}

// Committed returns the last mark, of an earlier daemon as well.
func (w *Writer) Committed() (Mark, bool) {
	v, _ := w.s.look()
	return v.mark, v.committed
}

// fresh drops what init repeats after a Reopen.
func (w *Writer) fresh(kind uint8, p []byte) []byte {
	n := min(w.skip[kind-1], uint64(len(p)))
	w.skip[kind-1] -= n
	return p[n:]
}

// Detach lets go of a stream that has not ended, for a daemon that stops while its job runs. Readers go on waiting for a
// Reopen. Without it nothing is lost either.
func (w *Writer) Detach() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.info != nil || errors.Is(w.err, ErrClosed) {
		return nil
	}
	var errs []error
	if w.err == nil {
		v := w.s.view
		errs = append(errs, w.seal(&v), w.save(&v.state))
	}
	w.release(fault(w.s.id, ErrClosed, "", nil))
	if err := errors.Join(errs...); err != nil {
		return diskFault(w.s.id, "write", err)
	}
	return nil
}

// release ends the Writer's part in the stream.
func (w *Writer) release(why error) {
	w.err = why
	w.hash.stopNow()
	w.s.detach()
	w.s.logs.unregister(w)
	w.s.logs.drop(w.s)
}
