package enginetest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"

	"sandboxd/internal/engine"
)

// AddImage puts an image into the fake by hand. An empty ID is filled in; the image as stored is returned.
func (f *Fake) AddImage(img engine.Image) engine.Image {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addImageLocked(&stored{Image: img})
}

// Publish puts an image where ImagePull finds it under ref.
func (f *Fake) Publish(ref string, img engine.Image) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.published[withTag(ref)] = img
}

func (f *Fake) addImageLocked(img *stored) engine.Image {
	if img.ID == "" {
		img.ID = "sha256:" + randomHex(32)
	}
	if img.OS == "" {
		img.OS, img.Arch = "linux", "amd64"
	}
	for _, tag := range img.RepoTags {
		f.untagLocked(tag)
	}
	if old := f.images[img.ID]; old != nil {
		img.RepoTags = slices.Compact(slices.Sorted(slices.Values(append(old.RepoTags, img.RepoTags...))))
	}
	f.images[img.ID] = img
	return img.Image
}

func (f *Fake) untagLocked(tag string) {
	for _, img := range f.images {
		img.RepoTags = slices.DeleteFunc(slices.Clone(img.RepoTags), func(t string) bool { return t == tag })
	}
}

// ImageInspect finds an image by id, tag or digest.
func (f *Fake) ImageInspect(ctx context.Context, ref string) (engine.Image, error) {
	var out engine.Image
	err := f.onImage(ctx, engine.OpImageInspect, ref, func(img *stored) error {
		out = img.Image
		out.RepoTags, out.Env, out.Labels = slices.Clone(img.RepoTags), slices.Clone(img.Env), maps.Clone(img.Labels)
		return nil
	})
	return out, err
}

// ImagePull takes an image that was published; any other is NotFound.
func (f *Fake) ImagePull(ctx context.Context, ref string, progress func(string)) error {
	err := f.call(ctx, Call{Op: engine.OpImagePull, Ref: ref}, func() error {
		if err := goodRef(ref); err != nil {
			return err
		}
		img, exists := f.published[withTag(ref)]
		if !exists {
			return because(engine.NotFound, "pull access denied for %s, repository does not exist", ref)
		}
		img.RepoTags = append(slices.Clone(img.RepoTags), withTag(ref))
		f.addImageLocked(&stored{Image: img})
		return nil
	})
	if err == nil && progress != nil {
		progress("Pulling from " + ref)
		progress("Status: Downloaded newer image for " + withTag(ref))
	}
	return err
}

// ImageSave gives the archive an image was loaded from, or an archive without layers.
func (f *Fake) ImageSave(ctx context.Context, id string) (io.ReadCloser, error) {
	var archive []byte
	err := f.onImage(ctx, engine.OpImageSave, id, func(img *stored) error {
		if archive = img.archive; archive == nil {
			archive = Archive(ImageSpec{Tag: "fake:empty", Env: img.Env, Volumes: img.Volumes, Labels: img.Labels})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(archive)), nil
}

// ImageLoad takes what Archive writes.
func (f *Fake) ImageLoad(ctx context.Context, archive io.Reader) error {
	return f.call(ctx, Call{Op: engine.OpImageLoad}, func() error {
		b, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		img, err := readArchive(b)
		if err != nil {
			return err
		}
		f.addImageLocked(img)
		return nil
	})
}

// ImageRemove takes away a name, and the image with its last name. It is idempotent.
func (f *Fake) ImageRemove(ctx context.Context, ref string) error {
	return f.call(ctx, Call{Op: engine.OpImageRemove, Ref: ref}, func() error {
		img, err := f.findImageLocked(ref)
		if engine.KindOf(err) == engine.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		for _, r := range f.containers {
			if r.asked.Image == img.ID {
				return because(engine.Conflict, "image %s is used by container %s", ref, r.state.ID)
			}
		}
		if ref == img.ID && len(img.RepoTags) > 1 {
			return because(engine.Conflict, "image %s has several names", ref)
		}
		if ref == img.ID {
			img.RepoTags = nil
		}
		f.untagLocked(withTag(ref))
		if len(img.RepoTags) == 0 {
			delete(f.images, img.ID)
		}
		return nil
	})
}

func (f *Fake) onImage(ctx context.Context, op, ref string, effect func(*stored) error) error {
	return f.call(ctx, Call{Op: op, Ref: ref}, func() error {
		img, err := f.findImageLocked(ref)
		if err != nil {
			return err
		}
		return effect(img)
	})
}

func (f *Fake) findImageLocked(ref string) (*stored, error) {
	if err := goodRef(ref); err != nil {
		return nil, err
	}
	if img := f.images[ref]; img != nil {
		return img, nil
	}
	for _, img := range f.images {
		if slices.Contains(img.RepoTags, withTag(ref)) || slices.Contains(img.RepoDigests, ref) {
			return img, nil
		}
	}
	return nil, because(engine.NotFound, "no such image: %s", ref)
}
