package main

import (
	"archive/tar"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// buildTiny builds the real image in a folder of the test's.
func buildTiny(t *testing.T) *image {
	t.Helper()
	r, err := recipesOf([]string{"tiny"}, thisHost())
	if err != nil {
		t.Fatal(err)
	}
	r[0].Tag = "sandboxd/tiny:test"
	img, err := build(t.Context(), r[0], t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { img.layer.close() })
	return img
}

func TestTinyIsTheSameTwiceAndFast(t *testing.T) {
	first := buildTiny(t)
	begun := time.Now()
	if second := buildTiny(t); first.id() != second.id() {
		t.Errorf("ids %s and %s", first.id(), second.id())
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("took %v, want at most 2 s", took)
	}
}

func TestTinyHasAShellAccountsAndTheFoldersOfAJob(t *testing.T) {
	got := map[string]*tar.Header{}
	for _, h := range written(t, buildTiny(t).layer) {
		got[strings.TrimSuffix(h.Name, "/")] = h
	}
	for _, f := range folders {
		if h := got[f.Name]; h == nil || h.Typeflag != tar.TypeDir || h.Mode != f.Mode {
			t.Errorf("folder %s: %+v, want mode %o", f.Name, h, f.Mode)
		}
	}
	for _, name := range []string{"bin/sh", "bin/cat", "usr/bin/env", "usr/bin/nproc"} {
		if h := got[name]; h == nil || h.Linkname != "/bin/busybox" {
			t.Errorf("applet %s: %+v, want a link to /bin/busybox", name, h)
		}
	}
	if h := got["bin/busybox"]; h == nil || h.Mode != 0o755 || h.Size < 500_000 {
		t.Errorf("busybox: %+v", h)
	}
	if got["etc/passwd"] == nil || got["etc/group"] == nil {
		t.Error("no account files")
	}
}

func TestTheEngineGivesTinyTheSameIdTwice(t *testing.T) {
	eng, err := newEngine(os.Getenv("DOCKER_HOST"))
	if err != nil {
		t.Skip(err)
	}
	if err := eng.checkArch(t.Context(), thisHost().Arch); err != nil {
		t.Skip(err)
	}
	var ids []string
	for range 2 {
		img := buildTiny(t)
		if err := eng.load(t.Context(), img.write); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { removeImage(t, eng, img.tag) })
		have, err := eng.find(t.Context(), img.tag)
		if err != nil || have.Recipe == "" {
			t.Fatalf("the engine has %+v (%v), want a recipe label", have, err)
		}
		ids = append(ids, have.ID)
	}
	if ids[0] != ids[1] {
		t.Errorf("ids %q", ids)
	}
}

// removeImage takes a test's tag back. A tag that is gone already is fine.
func removeImage(t *testing.T, eng *engine, tag string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodDelete, eng.base+"/images/"+tag, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := eng.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNotFound {
		t.Errorf("remove %s: %s", tag, res.Status)
	}
}
