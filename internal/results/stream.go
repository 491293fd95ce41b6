package results

import (
	"errors"
	"sync"

	"sandboxd/internal/job"
)

// view is what readers may know of a stream. They copy it; only the Writer makes a new one.
type view struct {
	state
	lastPos int64  // of the newest record, -1 when there is none
	last    header // the newest record with the payload it has by now; it may still grow
}

// stream is one job's file while somebody uses it.
type stream struct {
	id   job.ID
	logs *Logs

	refs int // the Writer and the readers; guarded by logs.mu

	opening sync.Mutex
	opened  bool // the file is open and what is below is set; guarded by opening
	disk    disk
	rawLast int    // what recovery left for a Writer: the length in the header on disk of the newest record,
	gen     uint64 // the number of the page's newer slot,
	outs    []span // and where the end of stdout lies

	mu      sync.Mutex
	view    view
	anchors []mark // starts of records in the ring, ascending, about one each step; the first is view.oldest
	live    bool   // a Writer is attached
	gone    error  // no more for readers: ErrRemoved, ErrClosed
	bell    bell
}

// look returns a copy of the view.
func (s *stream) look() (view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view, s.gone
}

// changed returns a channel that is closed at the next change after v, or nil when v is out of date already.
func (s *stream) changed(v *view) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil || s.view.end != v.end || s.view.ended != v.ended {
		return nil
	}
	return s.bell.wait()
}

// publish makes what was written visible. starts are the new records.
func (s *stream) publish(v *view, starts []mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = *v
	for _, m := range starts {
		s.anchorLocked(m)
	}
	s.bell.ring(&s.mu)
}

// update changes what no reader waits for.
func (s *stream) update(v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = *v
}

func (s *stream) anchorLocked(m mark) {
	n := len(s.anchors)
	if m.pos >= s.disk.lay.head && (n == 0 || m.pos-s.anchors[n-1].pos >= s.disk.lay.step()) {
		s.anchors = append(s.anchors, m)
	}
}

// evict takes what lies before limit in the ring from the readers. spare is the record start to go on from when no
// anchor is left. It returns the new oldest place.
func (s *stream) evict(limit int64, spare mark) mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	for i < len(s.anchors) && s.anchors[i].pos < limit {
		i++
	}
	s.anchors = s.anchors[:copy(s.anchors, s.anchors[i:])]
	if len(s.anchors) == 0 {
		s.anchors = append(s.anchors, spare)
	}
	s.view.oldest = s.anchors[0]
	return s.view.oldest
}

// readAt reads what the view has at pos. errOvertaken when it was overwritten meanwhile, whatever else went wrong.
func (s *stream) readAt(p []byte, pos int64) error {
	err := s.disk.readAt(p, pos)
	if pos < s.disk.lay.head {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if pos < s.view.oldest.pos {
		return errOvertaken
	}
	return err
}

var errOvertaken = errors.New("overwritten while it was read")

// middle is a place in the ring with some distance to the Writer, for a reader that was overtaken while reading.
func (s *stream) middle() mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.anchors) == 0 {
		return s.view.oldest
	}
	return s.anchors[len(s.anchors)/2]
}

// info describes the stream to the job's record.
func (v *view) info() job.StreamInfo {
	return job.StreamInfo{
		Bytes: int64(v.end.off), Kept: int64(v.kept()), Truncated: v.kept() < v.end.off,
		Stdout: int64(v.sums[0].Bytes), Stderr: int64(v.sums[1].Bytes),
	}
}
