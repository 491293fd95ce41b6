package results

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sandboxd/internal/job"
)

// Remove deletes the stream of a job; one that does not exist is no error. Readers get ErrRemoved. A stream that is
// being written is a conflict.
func (l *Logs) Remove(id job.ID) error {
	s, err := l.take(id)
	if err != nil {
		return err
	}
	defer l.drop(s)
	s.opening.Lock()
	defer s.opening.Unlock()
	if !s.leave(fault(id, ErrRemoved, "", nil), false) {
		return job.Errorf(job.CodeConflict, "", "the output of job %s is still being written", id)
	}
	err = os.Remove(l.path(id))
	l.forget(s)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return diskFault(id, "remove", err)
	}
	return nil
}

// forget lets whoever asks from now on look at the disk again; those who hold s keep it.
func (l *Logs) forget(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[s.id] == s {
		delete(l.streams, s.id)
	}
}

// List returns the jobs that have a stream on disk, for the sweep that finds those without a record.
func (l *Logs) List() ([]job.ID, error) {
	var ids []job.ID
	err := fs.WalkDir(os.DirFS(l.dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		id, err := job.ParseID(strings.TrimSuffix(e.Name(), suffix))
		if err == nil && e.Type().IsRegular() && filepath.Join(l.dir, name) == l.path(id) {
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
