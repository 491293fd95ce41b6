package results

import (
	"errors"
	"os"
	"path/filepath"

	"sandboxd/internal/job"
)

// create makes the file. The folder's entry reaches the disk with Close: a host that went down has no job to record.
func (s *stream) create(lay layout) error {
	path := s.logs.path(s.id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return diskFault(s.id, "make folder", err)
	}
	f, err := openFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if errors.Is(err, os.ErrExist) {
		return exists(s.id)
	}
	if err != nil {
		return diskFault(s.id, "create", err)
	}
	if err := s.startOver(f, lay); err != nil {
		return errors.Join(diskFault(s.id, "create", err), f.Close(), os.Remove(path))
	}
	return nil
}

// startOver makes a stream's file anew: its page, no records.
func (s *stream) startOver(f *os.File, lay layout) error {
	d := disk{f: f, lay: lay, ops: s.logs.ops}
	st := newState(lay)
	if err := d.write(0, make([]byte, pageSize), nil); err != nil {
		return err
	}
	if err := d.writePage(&st, 0, new([slotSize]byte)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk, s.view = d, view{state: st, lastPos: -1}
	return nil
}

// exists is the error of Create for a stream that is there.
func exists(id job.ID) error {
	return job.Errorf(job.CodeConflict, "", "the output of job %s is recorded already; reopen it", id)
}

// load opens the file of a stream that has no Writer in this process. lay is what to assume for a file without a sound
// page, which only Reopen accepts. The caller holds s.opening.
func (s *stream) load(lay *layout) error {
	f, err := openFile(s.logs.path(s.id), os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) {
		return notFound(s.id)
	}
	if err != nil {
		return diskFault(s.id, "open", err)
	}
	d := &disk{f: f, ops: s.logs.ops}
	if err := s.survey(d, lay); err != nil {
		_ = f.Close()
		return err
	}
	s.disk = *d
	return nil
}

// survey sets the view from what is in the file. For Reopen, lay is given, and the end of stdout is looked up as well.
func (s *stream) survey(d *disk, lay *layout) error {
	fi, err := d.f.Stat()
	if err != nil {
		return diskFault(s.id, "stat", err)
	}
	size := fi.Size()
	st, gen, ok, err := d.readPage()
	switch {
	case err != nil:
		return diskFault(s.id, "read", err)
	case s.opened && (!ok || st.lay != d.lay): // it was sound when it was opened
		return fault(s.id, ErrCorrupt, "no sound page", nil)
	case !ok && lay != nil:
		st = newState(*lay)
	case !ok && size < pageSize: // its making was cut short
		return notFound(s.id)
	case !ok:
		return fault(s.id, ErrCorrupt, "no sound page", nil)
	}
	d.lay = st.lay
	found := &survey{view: view{state: st, lastPos: -1}}
	if !st.ended || lay != nil { // a reader takes an ended stream as the page tells it
		if found, err = findEnd(d, st, max(size-pageSize, 0)); err != nil {
			return diskFault(s.id, "read", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen = gen
	s.view, s.anchors, s.rawLast, s.outs = found.view, found.anchors, found.rawLast, found.outs
	return nil
}

// openFile opens without following a link, which nobody but root could have put there.
func openFile(path string, flag int) (*os.File, error) {
	return os.OpenFile(path, flag|nofollow, 0o600)
}
