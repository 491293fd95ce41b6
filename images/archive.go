package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// image is one built image: its config and its only layer.
type image struct {
	tag       string
	config    []byte
	layer     *layer
	layerSize int64
	layerHash string // of the tar, in hex
}

// The image config in the order it is written: its bytes are the image's identity.
type (
	configFile struct {
		Architecture string          `json:"architecture"`
		Config       containerConfig `json:"config"`
		Created      string          `json:"created"`
		History      []history       `json:"history"`
		OS           string          `json:"os"`
		RootFS       rootFS          `json:"rootfs"`
	}
	// containerConfig never names a volume, a health check or an entrypoint: those would act on a job.
	containerConfig struct {
		Env    []string          `json:"Env"`
		Cmd    []string          `json:"Cmd"`
		Labels map[string]string `json:"Labels"`
	}
	history struct {
		Created   string `json:"created"`
		CreatedBy string `json:"created_by"`
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
)

// newImage measures the layer and writes the config.
func newImage(r recipe, l *layer) (*image, error) {
	hash, size := sha256.New(), counter(0)
	if err := l.write(io.MultiWriter(hash, &size)); err != nil {
		return nil, fmt.Errorf("write the layer: %w", err)
	}
	img := &image{tag: r.Tag, layer: l, layerSize: int64(size), layerHash: hex.EncodeToString(hash.Sum(nil))}
	created := epoch.Format(time.RFC3339)
	config, err := json.Marshal(configFile{
		Architecture: r.Arch,
		OS:           "linux",
		Created:      created,
		Config: containerConfig{
			Env:    []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Cmd:    []string{"sh"},
			Labels: map[string]string{recipeLabel: r.hash()},
		},
		History: []history{{Created: created, CreatedBy: "sandboxd images"}},
		RootFS:  rootFS{Type: "layers", DiffIDs: []string{"sha256:" + img.layerHash}},
	})
	img.config = config
	return img, err
}

// id is the image's id in the engine's classic store.
func (img *image) id() string {
	sum := sha256.Sum256(img.config)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// write emits the archive the engine's image load takes: manifest, config, layer.
func (img *image) write(to io.Writer) error {
	configName := img.id()[len("sha256:"):] + ".json"
	layerName := img.layerHash + "/layer.tar"
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": configName, "RepoTags": []string{img.tag}, "Layers": []string{layerName},
	}})
	if err != nil {
		return err
	}
	w := tar.NewWriter(to)
	for _, part := range []struct {
		name    string
		content []byte
	}{{"manifest.json", manifest}, {configName, img.config}} {
		if err := w.WriteHeader(partHeader(part.name, int64(len(part.content)))); err != nil {
			return err
		}
		if _, err := w.Write(part.content); err != nil {
			return err
		}
	}
	if err := w.WriteHeader(partHeader(layerName, img.layerSize)); err != nil {
		return err
	}
	if err := img.layer.write(w); err != nil {
		return err
	}
	return w.Close()
}

func partHeader(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: epoch}
}

// counter counts the bytes written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
