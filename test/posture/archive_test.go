package posture_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// image is one that an enemy built. Its lowest layer holds the probe, unless it is bare.
type image struct {
	name   string
	bare   bool
	os     string // default linux
	arch   string // default the host's
	config map[string]any
	layers [][]file
}

// file is one entry of a layer.
type file struct {
	header  tar.Header
	content []byte
}

func link(name, target string) file {
	return file{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil}
}

func hardLink(name, target string) file {
	return file{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o755}, nil}
}

func folder(name string, mode int64) file {
	return file{tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}, nil}
}

func regular(name string, mode int64, content []byte) file {
	return file{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}, content}
}

// layerTar is a layer as a tar.
func layerTar(t testing.TB, files []file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		f.header.ModTime = time.Unix(1700000000, 0)
		if err := w.WriteHeader(&f.header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// archive is one file for docker load with all the images; a layer they share is in it once.
type archive struct {
	t        testing.TB
	w        *tar.Writer
	seen     map[string]bool
	manifest []map[string]any
}

func (a *archive) put(name string, content []byte) {
	if a.seen[name] {
		return
	}
	a.seen[name] = true
	h := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}
	if err := a.w.WriteHeader(&h); err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.w.Write(content); err != nil {
		a.t.Fatal(err)
	}
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func (a *archive) add(i image, base []file, arch string) {
	var diffs, names []string
	layers := i.layers
	if !i.bare {
		layers = append([][]file{base}, layers...)
	}
	for _, files := range layers {
		layer := layerTar(a.t, files)
		name := sum(layer) + "/layer.tar"
		a.put(name, layer)
		diffs, names = append(diffs, "sha256:"+sum(layer)), append(names, name)
	}
	config := map[string]any{"Cmd": []string{"/probe", "ids"}}
	for k, v := range i.config {
		config[k] = v
	}
	system := i.os
	if system == "" {
		system = "linux"
	}
	if i.arch != "" {
		arch = i.arch
	}
	text, err := json.Marshal(map[string]any{
		"architecture": arch, "os": system, "created": "2026-01-01T00:00:00Z", "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	name := sum(text) + ".json"
	a.put(name, text)
	a.manifest = append(a.manifest, map[string]any{"Config": name, "RepoTags": []string{i.name + ":latest"}, "Layers": names})
}

// load loads images, and takes them away at the end of the test. What the engine itself refuses comes back as its word.
func load(t testing.TB, images []image, base []file, arch string) (refused string) {
	t.Helper()
	var tags []string
	for _, i := range images {
		tags = append(tags, i.name+":latest")
	}
	t.Cleanup(func() { _ = exec.Command("docker", append([]string{"rmi", "-f"}, tags...)...).Run() })
	r, pipe := io.Pipe()
	go func() {
		a := &archive{t: t, w: tar.NewWriter(pipe), seen: map[string]bool{}}
		for _, i := range images {
			a.add(i, base, arch)
		}
		text, err := json.Marshal(a.manifest)
		if err == nil {
			a.put("manifest.json", text)
			err = a.w.Close()
		}
		pipe.CloseWithError(err)
	}()
	cmd := exec.Command("docker", "load")
	cmd.Stdin = r
	out, err := cmd.CombinedOutput()
	_ = r.Close()
	if err != nil {
		return strings.TrimSpace(string(out))
	}
	return ""
}
