package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unicode"

	"sandboxd/internal/engine"
	"sandboxd/internal/job"
)

// Bounds on what an image may bring along; each goes into every container's configuration.
const (
	maxLayers      = 125 // the engine's storage takes no more
	maxLabels      = 1000
	maxEnv         = 1000
	maxConfigBytes = 256 << 10 // of all labels, and of all variables
)

// imageVerdicts remembers what was found of each image id, for an id never means another image.
type imageVerdicts struct {
	mu   sync.Mutex
	byID map[string]*verdict
}

type verdict struct {
	done chan struct{} // closed when err stands
	err  error
}

// CheckImage looks at an image once: platform, sizes, volumes, and the headers of its layers. A refusal is a job.Error
// with code image. Cached by image id; an engine that fails is asked again the next time.
func (s *Sandbox) CheckImage(ctx context.Context, img engine.Image) error {
	for {
		v, first := s.images.claim(img.ID)
		if first {
			v.err = s.lookAt(ctx, img)
			s.images.settle(img.ID, v)
			return v.err
		}
		select {
		case <-v.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if v.err == nil || isVerdict(v.err) {
			return v.err
		}
		// Whoever looked was cut short; look again.
	}
}

func (i *imageVerdicts) claim(id string) (v *verdict, first bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byID == nil {
		i.byID = map[string]*verdict{}
	}
	if v, ok := i.byID[id]; ok {
		return v, false
	}
	v = &verdict{done: make(chan struct{})}
	i.byID[id] = v
	return v, true
}

func (i *imageVerdicts) settle(id string, v *verdict) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if v.err != nil && !isVerdict(v.err) {
		delete(i.byID, id)
	}
	close(v.done)
}

// isVerdict tells a refusal of the image from a failure to look at it.
func isVerdict(err error) bool {
	var e *job.Error
	return errors.As(err, &e) && e.Code == job.CodeImage
}

func (s *Sandbox) lookAt(ctx context.Context, img engine.Image) error {
	if err := checkConfig(img, runtime.GOARCH); err != nil {
		return err
	}
	archive, err := s.eng.ImageSave(ctx, img.ID)
	if err != nil {
		return fmt.Errorf("reading the image's layers: %w", err)
	}
	defer archive.Close()
	return scanArchive(archive)
}

// checkConfig judges what the engine says of the image.
func checkConfig(img engine.Image, arch string) error {
	labels, env := 0, 0
	for k, v := range img.Labels {
		labels += len(k) + len(v)
	}
	for _, e := range img.Env {
		env += len(e)
		name, _, ok := strings.Cut(e, "=")
		if !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) {
			return unfit("its environment has %.64q, which is no NAME=VALUE", e)
		}
	}
	switch {
	case img.OS != "linux" || img.Arch != arch:
		return unfit("it is for %s/%s, this host is linux/%s", img.OS, img.Arch, arch)
	case img.Layers > maxLayers:
		return unfit("it has %d layers, at most %d work", img.Layers, maxLayers)
	case len(img.Labels) > maxLabels || labels > maxConfigBytes:
		return unfit("it has %d labels of %d bytes, at most %d of %d are taken", len(img.Labels), labels, maxLabels, maxConfigBytes)
	case len(img.Env) > maxEnv || env > maxConfigBytes:
		return unfit("it has %d variables of %d bytes, at most %d of %d are taken", len(img.Env), env, maxEnv, maxConfigBytes)
	}
	_, err := shadowed(img.Volumes, nil)
	return err
}
