package main

import (
	"archive/tar"
	"io"
	"maps"
	"slices"
)

// write emits the layer as a tar: sorted by name, which puts every folder before what it holds. It may be
// called again and writes the same bytes.
func (l *layer) write(to io.Writer) error {
	w := tar.NewWriter(to)
	first := map[int64]string{} // content place → the name that carries it; later names are hard links
	for _, name := range slices.Sorted(maps.Keys(l.entries)) {
		e := l.entries[name]
		h := header(name, e)
		if e.kind == tar.TypeReg && e.size > 0 {
			if carrier, ok := first[e.at]; ok {
				h.Typeflag, h.Linkname, h.Size = tar.TypeLink, carrier, 0
			} else {
				first[e.at] = name
			}
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if h.Size == 0 {
			continue
		}
		if _, err := io.Copy(w, io.NewSectionReader(l.spool, e.at, e.size)); err != nil {
			return err
		}
	}
	return w.Close()
}

func header(name string, e entry) *tar.Header {
	h := &tar.Header{
		Name: name, Typeflag: e.kind, Mode: e.mode, Uid: e.uid, Gid: e.gid,
		Size: e.size, Linkname: e.target, ModTime: epoch,
	}
	if e.kind == tar.TypeDir {
		h.Name += "/"
	}
	return h
}
