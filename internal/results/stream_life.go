package results

import "sandboxd/internal/job"

// leave ends the stream for its readers. A live one is left only when even is set; false says that it was not.
func (s *stream) leave(why error, even bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live && !even {
		return false
	}
	if s.gone == nil {
		s.gone = why
	}
	s.bell.now()
	return true
}

// attach makes a Writer the stream's own; the second one is refused.
func (s *stream) attach() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone != nil:
		return s.gone
	case s.live:
		return job.Errorf(job.CodeConflict, "", "the output of job %s is being written already", s.id)
	}
	s.live = true
	return nil
}

func (s *stream) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = false
}

func (s *stream) closeFile() {
	if s.disk.f != nil {
		_ = s.disk.f.Close() // what had to be on disk was synced
	}
}
