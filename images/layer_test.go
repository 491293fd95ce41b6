package main

import (
	"archive/tar"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// testLayer returns an empty layer that is closed with the test.
func testLayer(t *testing.T) *layer {
	t.Helper()
	l, err := newLayer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// tarOf writes a tar stream such as mmdebstrap's.
func tarOf(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		content := strings.Repeat("x", int(h.Size))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// written returns the headers of the tar a layer writes.
func written(t *testing.T, l *layer) []*tar.Header {
	t.Helper()
	var out bytes.Buffer
	if err := l.write(&out); err != nil {
		t.Fatal(err)
	}
	var headers []*tar.Header
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if err == io.EOF {
			return headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
	}
}

func keepAll(string, bool) bool { return false }

func TestALayerIsSortedWithItsParentsAndOneTime(t *testing.T) {
	l := testLayer(t)
	for _, name := range []string{"b/c/file", "/a", "b-side"} {
		if err := l.file(name, 0o644, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, h := range written(t, l) {
		names = append(names, h.Name)
		if !h.ModTime.Equal(epoch) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s: time %v, uid %d, owner name %q", h.Name, h.ModTime, h.Uid, h.Uname)
		}
	}
	if want := []string{"a", "b/", "b-side", "b/c/", "b/c/file"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
}

func TestATreeLosesWhatIsVolatileOrGrantsRights(t *testing.T) {
	l := testLayer(t)
	in := tarOf(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeDir, Name: "./var/mail/", Mode: 0o2775, Gid: 8},
		tar.Header{
			Typeflag: tar.TypeReg, Name: "./bin/su", Mode: 0o4755, Size: 3, Uname: "root", ModTime: time.Unix(9, 0),
			PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "all"},
		},
		tar.Header{Typeflag: tar.TypeDir, Name: "./tmp/", Mode: 0o1777},
		tar.Header{Typeflag: tar.TypeChar, Name: "./dev/null", Mode: 0o666},
	)
	if err := l.tree(in, func(name string, _ bool) bool { return name == "dev/null" }); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"bin/": 0o755, "bin/su": 0o755, "tmp/": 0o1777, "var/": 0o755, "var/mail/": 0o775}
	for _, h := range written(t, l) {
		if mode, ok := want[h.Name]; !ok || h.Mode != mode {
			t.Errorf("%s has mode %o, want %o (expected: %v)", h.Name, h.Mode, mode, ok)
		}
		if len(h.PAXRecords) != 0 || !h.ModTime.Equal(epoch) {
			t.Errorf("%s keeps %v, time %v", h.Name, h.PAXRecords, h.ModTime)
		}
		delete(want, h.Name)
	}
	if len(want) != 0 {
		t.Errorf("not written: %v", want)
	}
}

func TestTheFirstNameOfAHardLinkCarriesTheContent(t *testing.T) {
	l := testLayer(t)
	in := tarOf(t,
		tar.Header{Typeflag: tar.TypeReg, Name: "./perl", Mode: 0o755, Size: 5},
		tar.Header{Typeflag: tar.TypeReg, Name: "./empty", Mode: 0o644},
		tar.Header{Typeflag: tar.TypeReg, Name: "./hollow", Mode: 0o644},
		tar.Header{Typeflag: tar.TypeLink, Name: "./a-link", Linkname: "./perl", Mode: 0o755},
	)
	if err := l.tree(in, keepAll); err != nil {
		t.Fatal(err)
	}
	got := written(t, l)
	if got[0].Name != "a-link" || got[0].Typeflag != tar.TypeReg || got[0].Size != 5 {
		t.Errorf("first: %s, type %q, %d bytes; want a file a-link of 5", got[0].Name, got[0].Typeflag, got[0].Size)
	}
	if last := got[3]; last.Name != "perl" || last.Typeflag != tar.TypeLink || last.Linkname != "a-link" {
		t.Errorf("last: %s, type %q, to %q; want perl linked to a-link", last.Name, last.Typeflag, last.Linkname)
	}
	if got[1].Typeflag != tar.TypeReg || got[2].Typeflag != tar.TypeReg {
		t.Error("two empty files became links of each other")
	}
}

func TestALayerRefusesWhatAnEngineWouldMisread(t *testing.T) {
	for name, headers := range map[string][]tar.Header{
		"device":              {{Typeflag: tar.TypeBlock, Name: "disk"}},
		"file below a link":   {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}, {Typeflag: tar.TypeReg, Name: "l/passwd"}},
		"link without target": {{Typeflag: tar.TypeLink, Name: "l", Linkname: "gone"}},
		"file over a folder":  {{Typeflag: tar.TypeDir, Name: "d"}, {Typeflag: tar.TypeReg, Name: "d"}},
		"folder over a link":  {{Typeflag: tar.TypeSymlink, Name: "workspace", Linkname: "/"}, {Typeflag: tar.TypeDir, Name: "workspace"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := testLayer(t).tree(tarOf(t, headers...), keepAll); err == nil {
				t.Error("taken")
			}
		})
	}
}

func TestNamesCannotLeaveTheImage(t *testing.T) {
	for in, want := range map[string]string{"./a/b/": "a/b", "/a": "a", "../../etc": "etc", ".": "", "./": "", "a/../b": "b"} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}
