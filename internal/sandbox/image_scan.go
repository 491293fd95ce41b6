package sandbox

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

const (
	maxEntries  = 4 << 20 // of all layers
	maxManifest = 4 << 20
)

// mountPlaces are where containers get mounts. In an image each is a directory or absent: through a link the mount
// would land elsewhere.
var mountPlaces = []string{
	"/dev", "/proc", "/sys", "/etc", "/home", "/sbx", "/sbx/bin",
	PathSlot, PathWorkspace, PathData, PathMnt, PathOut, PathTmp, PathHome, PathRun,
}

// mountFiles get a file each from the engine; mountTrees get mounts on names below them.
var (
	mountFiles = []string{"/etc/resolv.conf", "/etc/hostname", "/etc/hosts"}
	mountTrees = []string{"/sbx/", PathData + "/", PathMnt + "/"}
)

// archiveScan reads an image archive (`image save`, either of its formats) once, from front to back, and judges the
// headers of its layers. It is an early word to the user: what it overlooks, for example an entry that is written
// through a link, the gate sees in the mounts of the container.
type archiveScan struct {
	layers   map[string]bool   // archive entries that were read as layers
	links    map[string]string // archive entries that are links to others
	manifest []byte
	entries  int
}

func scanArchive(r io.Reader) error {
	s := &archiveScan{layers: map[string]bool{}, links: map[string]string{}}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return s.complete()
		}
		if err != nil {
			return fmt.Errorf("reading the image's layers: %w", err)
		}
		if err := s.entry(h, archive); err != nil {
			return err
		}
	}
}

func (s *archiveScan) entry(h *tar.Header, content io.Reader) error {
	name := path.Clean(h.Name)
	switch {
	case h.Typeflag == tar.TypeSymlink:
		s.links[name] = path.Join(path.Dir(name), h.Linkname)
	case h.Typeflag == tar.TypeLink:
		s.links[name] = path.Clean(h.Linkname)
	case h.Typeflag != tar.TypeReg:
	case name == "manifest.json":
		var err error
		if s.manifest, err = io.ReadAll(io.LimitReader(content, maxManifest)); err != nil {
			return fmt.Errorf("reading the image's manifest: %w", err)
		}
	default:
		return s.blob(name, content)
	}
	return nil
}

// blob reads an entry as a layer if it is one: a tar, plain or by gzip.
func (s *archiveScan) blob(name string, content io.Reader) error {
	r := bufio.NewReaderSize(content, 64<<10)
	head, err := r.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the image's layers: %w", err)
	}
	if len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return unfit("its layer %.80q is no gzip: %v", name, err)
		}
		r = bufio.NewReaderSize(z, 64<<10)
		if head, err = r.Peek(512); err != nil && !errors.Is(err, io.EOF) {
			return unfit("its layer %.80q cannot be unpacked: %v", name, err)
		}
	}
	if len(head) < 512 || !isTar(head) {
		return nil // a configuration; complete() sees when a layer is missing
	}
	if err := s.layer(r); err != nil {
		return err
	}
	s.layers[name] = true
	return nil
}

// isTar: the magic of all formats since 1988, or the zeros that end an empty one.
func isTar(head []byte) bool {
	return string(head[257:262]) == "ustar" || strings.Trim(string(head), "\x00") == ""
}

func (s *archiveScan) layer(r io.Reader) error {
	for layer := tar.NewReader(r); ; {
		h, err := layer.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the image's layers: %w", err)
		}
		if s.entries++; s.entries > maxEntries {
			return unfit("it has more than %d files", maxEntries)
		}
		if err := judge(h); err != nil {
			return err
		}
	}
}

// judge looks at one file of a layer.
func judge(h *tar.Header) error {
	at := path.Clean("/" + h.Name)
	link := h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink
	switch {
	case slices.Contains(mountPlaces, at) && h.Typeflag != tar.TypeDir:
		return unfit("%s in it is %s, and containers get a mount there", at, kindOf(h))
	case slices.Contains(mountFiles, at) && (h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeDir):
		return unfit("%s in it is %s, and containers get a file there", at, kindOf(h))
	case link && slices.ContainsFunc(mountTrees, func(t string) bool { return strings.HasPrefix(at, t) }):
		return unfit("%.128q in it is %s, and containers get mounts below %s", at, kindOf(h), path.Dir(at))
	}
	return nil
}

func kindOf(h *tar.Header) string {
	switch h.Typeflag {
	case tar.TypeSymlink:
		return fmt.Sprintf("a link to %.64q", h.Linkname)
	case tar.TypeLink:
		return fmt.Sprintf("a hard link to %.64q", h.Linkname)
	case tar.TypeDir:
		return "a directory"
	case tar.TypeReg:
		return "a file"
	}
	return "a special file"
}

// complete holds the scan to the manifest: every layer it names must have been read as one.
func (s *archiveScan) complete() error {
	var manifest []struct{ Layers []string }
	if err := json.Unmarshal(s.manifest, &manifest); err != nil || len(manifest) == 0 {
		return unfit("its archive has no manifest that can be read (%v)", err)
	}
	for _, m := range manifest {
		for _, layer := range m.Layers {
			name := path.Clean(layer)
			for range 8 { // links to links
				if to, ok := s.links[name]; ok {
					name = to
				}
			}
			if !s.layers[name] {
				return unfit("its layer %.80q is in a form that cannot be looked into", layer)
			}
		}
	}
	return nil
}
