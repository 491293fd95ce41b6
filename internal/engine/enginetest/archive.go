package enginetest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"

	"sandboxd/internal/engine"
)

// ImageSpec describes a test image of one layer.
type ImageSpec struct {
	Tag        string // name:tag
	Files      map[string][]byte
	Dirs       []string
	Env        []string
	User       string
	WorkingDir string
	Entrypoint []string
	Cmd        []string
	Volumes    []string
	Labels     map[string]string
	Health     []string // HEALTHCHECK, e.g. CMD, true
	StopSignal string
}

// imageConfig is the configuration file of an image, as far as tests need it.
type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Env        []string                 `json:",omitempty"`
		User       string                   `json:",omitempty"`
		WorkingDir string                   `json:",omitempty"`
		Entrypoint []string                 `json:",omitempty"`
		Cmd        []string                 `json:",omitempty"`
		Volumes    map[string]struct{}      `json:",omitempty"`
		Labels     map[string]string        `json:",omitempty"`
		StopSignal string                   `json:",omitempty"`
		Health     *struct{ Test []string } `json:"Healthcheck,omitempty"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Archive writes the image as docker load takes it. The same spec gives the same bytes.
func Archive(s ImageSpec) []byte {
	layer := layerOf(s)
	var c imageConfig
	c.Architecture, c.OS = runtime.GOARCH, "linux"
	c.Config.Env, c.Config.User, c.Config.WorkingDir = s.Env, s.User, s.WorkingDir
	c.Config.Entrypoint, c.Config.Cmd, c.Config.Labels, c.Config.StopSignal = s.Entrypoint, s.Cmd, s.Labels, s.StopSignal
	for _, v := range s.Volumes {
		if c.Config.Volumes == nil {
			c.Config.Volumes = map[string]struct{}{}
		}
		c.Config.Volumes[v] = struct{}{}
	}
	if len(s.Health) > 0 {
		c.Config.Health = &struct{ Test []string }{s.Health}
	}
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{"sha256:" + hexSum(layer)}
	config := mustJSON(c)
	name := hexSum(config) + ".json"

	var out bytes.Buffer
	w := tar.NewWriter(&out)
	put(w, "layer.tar", layer, 0o644)
	put(w, name, config, 0o644)
	put(w, "manifest.json", mustJSON([]manifest{{Config: name, RepoTags: []string{s.Tag}, Layers: []string{"layer.tar"}}}), 0o644)
	must(w.Close())
	return out.Bytes()
}

func layerOf(s ImageSpec) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	dirs := map[string]bool{}
	addDir := func(d string) {
		var above []string
		for ; d != "." && d != "/" && !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
			above = append(above, d)
		}
		for _, d := range slices.Backward(above) {
			must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d + "/", Mode: 0o755}))
		}
	}
	for _, d := range s.Dirs {
		addDir(strings.Trim(d, "/"))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		clean := strings.Trim(name, "/")
		addDir(path.Dir(clean))
		put(w, clean, s.Files[name], 0o755)
	}
	must(w.Close())
	return out.Bytes()
}

func put(w *tar.Writer, name string, content []byte, mode int64) {
	must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}))
	_, err := w.Write(content)
	must(err)
}

// stored is an image of the fake.
type stored struct {
	engine.Image
	archive []byte          // what ImageSave gives; nil makes an empty one up
	files   map[string]bool // in its layers; nil where unknown
}

// readArchive understands what Archive writes and no more.
func readArchive(archive []byte) (*stored, error) {
	parts := map[string][]byte{}
	if err := eachEntry(archive, func(h *tar.Header, r io.Reader) (err error) {
		parts[h.Name], err = io.ReadAll(r)
		return err
	}); err != nil {
		return nil, err
	}
	var list []manifest
	if err := json.Unmarshal(parts["manifest.json"], &list); err != nil || len(list) != 1 {
		return nil, fmt.Errorf("manifest.json of the archive cannot be read: %d images, %w", len(list), err)
	}
	var c imageConfig
	raw := parts[list[0].Config]
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("configuration of the image cannot be read: %w", err)
	}
	img := &stored{archive: archive, files: map[string]bool{}}
	img.Image = engine.Image{
		ID: "sha256:" + hexSum(raw), RepoTags: list[0].RepoTags, OS: c.OS, Arch: c.Architecture, Layers: len(c.RootFS.DiffIDs),
		Volumes: slices.Sorted(maps.Keys(c.Config.Volumes)), Env: c.Config.Env, User: c.Config.User, WorkingDir: c.Config.WorkingDir,
		Entrypoint: c.Config.Entrypoint, Cmd: c.Config.Cmd, Healthcheck: c.Config.Health != nil, Labels: c.Config.Labels,
	}
	for _, layer := range list[0].Layers {
		img.Size += int64(len(parts[layer]))
		if err := eachEntry(parts[layer], func(h *tar.Header, _ io.Reader) error {
			img.files[strings.Trim(h.Name, "/")] = true
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return img, nil
}

func eachEntry(archive []byte, do func(*tar.Header, io.Reader) error) error {
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = do(h, r)
		}
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
	}
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	must(err)
	return b
}

// must is for writes to memory, which do not fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
