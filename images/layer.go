package main

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// layer collects the files of an image, their content in a spool file on disk, and writes them as a tar
// whose bytes depend on names, modes, owners and content alone.
type layer struct {
	spool   *os.File
	end     int64 // of the spool
	entries map[string]entry
}

// entry is one file, folder or symbolic link. Two files with the same content place are hard links.
type entry struct {
	kind     byte // tar.TypeReg, TypeDir or TypeSymlink
	mode     int64
	uid, gid int
	target   string // of a symbolic link
	at, size int64  // the content's place in the spool
}

func newLayer(dir string) (*layer, error) {
	spool, err := os.CreateTemp(dir, "spool-")
	if err != nil {
		return nil, err
	}
	return &layer{spool: spool, entries: map[string]entry{}}, nil
}

func (l *layer) close() error { return l.spool.Close() }

// folder makes a folder of root's, with its parents, or sets the mode of one that is there.
func (l *layer) folder(name string, mode int64) error {
	return l.add(name, entry{kind: tar.TypeDir, mode: mode})
}

func (l *layer) symlink(name, target string) error {
	return l.add(name, entry{kind: tar.TypeSymlink, mode: 0o777, target: target})
}

// file makes a file of root's.
func (l *layer) file(name string, mode int64, content io.Reader) error {
	e, err := l.store(content)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	e.mode = mode
	return l.add(name, e)
}

// tree takes in a whole tar stream, apart from what leftOut names.
func (l *layer) tree(in io.Reader, leftOut func(name string, isFolder bool) bool) error {
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := clean(h.Name)
		if name == "" || leftOut(name, h.Typeflag == tar.TypeDir) {
			continue
		}
		if err := l.take(name, h, r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
}

// take adds one entry of a tar stream. Its times, extended attributes, owner names and set-id bits are
// dropped: no command in a job may gain rights, so no image of ours carries a file that would grant them.
func (l *layer) take(name string, h *tar.Header, content io.Reader) error {
	e := entry{kind: h.Typeflag}
	switch h.Typeflag {
	case tar.TypeDir:
	case tar.TypeSymlink:
		e.target = h.Linkname
	case tar.TypeReg:
		var err error
		if e, err = l.store(content); err != nil {
			return err
		}
	case tar.TypeLink:
		linked, ok := l.entries[clean(h.Linkname)]
		if !ok {
			return fmt.Errorf("hard link to %q, which is not in the image", h.Linkname)
		}
		e = linked
	default:
		return fmt.Errorf("a file of tar type %q has no place in an image", h.Typeflag)
	}
	e.mode, e.uid, e.gid = h.Mode&0o1777, h.Uid, h.Gid
	return l.add(name, e)
}

// store appends content to the spool.
func (l *layer) store(content io.Reader) (entry, error) {
	size, err := io.Copy(l.spool, content)
	e := entry{kind: tar.TypeReg, at: l.end, size: size}
	l.end += size
	return e, err
}

// add records an entry and the parents it lacks. Nothing may lie below what is not a folder: the engine
// would follow a link there, or fail.
func (l *layer) add(name string, e entry) error {
	name = clean(name)
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if p, ok := l.entries[parent]; !ok {
			l.entries[parent] = entry{kind: tar.TypeDir, mode: 0o755}
		} else if p.kind != tar.TypeDir {
			return fmt.Errorf("%s: its parent %s is not a folder", name, parent)
		}
	}
	if was, ok := l.entries[name]; ok && was.kind != e.kind {
		return fmt.Errorf("%s is in the image already, as another kind of file", name)
	}
	l.entries[name] = e
	return nil
}

// clean gives the one spelling of a name inside an image: relative, without dots, "" for the root.
func clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}
