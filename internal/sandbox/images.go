package sandbox

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/engine"
	"sandboxd/internal/job"
)

// ImageEngine is what Images needs of the container engine.
type ImageEngine interface {
	ImageInspect(ctx context.Context, ref string) (engine.Image, error)
	ImagePull(ctx context.Context, ref string, progress func(string)) error
}

// Pull policies.
const (
	PullNever   = "never"
	PullMissing = "missing"
	PullAlways  = "always"
)

// imageFresh is how long a name's id is believed: long enough that a burst of submits asks the engine once, short
// enough that a rebuilt image is seen by the next command somebody types.
const imageFresh = time.Second

// Images resolves names to ids, looks at each image once, and keeps what it found.
type Images struct {
	eng   ImageEngine
	check func(context.Context, engine.Image) error
	pull  string

	mu     sync.Mutex
	byName map[string]namedImage
	byID   map[string]engine.Image
	pulls  map[string]*sync.Mutex // one pull of a name at a time
}

type namedImage struct {
	id string
	at time.Time
}

// NewImages makes Images; check refuses unfit images, see Sandbox.CheckImage.
func NewImages(eng ImageEngine, check func(context.Context, engine.Image) error, pull string) *Images {
	return &Images{eng: eng, check: check, pull: pull, byName: map[string]namedImage{}, byID: map[string]engine.Image{}, pulls: map[string]*sync.Mutex{}}
}

// Resolve returns the id a name has now, of an image that is fit to run. Errors are job.Errors: image, or engine when
// the engine is away.
func (i *Images) Resolve(ctx context.Context, name string) (string, error) {
	i.mu.Lock()
	known, ok := i.byName[name]
	i.mu.Unlock()
	if ok && time.Since(known.at) < imageFresh {
		return known.id, nil
	}
	img, err := i.find(ctx, name)
	if err != nil {
		return "", err
	}
	return img.ID, nil
}

// Get returns the image of an id resolved earlier, or of the name where there was no engine to resolve it.
func (i *Images) Get(ctx context.Context, name, id string) (engine.Image, error) {
	if id == "" {
		return i.find(ctx, name)
	}
	i.mu.Lock()
	img, ok := i.byID[id]
	i.mu.Unlock()
	if ok {
		return img, nil
	}
	img, err := i.eng.ImageInspect(ctx, id)
	if err != nil {
		return img, nameError(name, err)
	}
	return img, i.accept(ctx, "", img)
}

// Gone reports whether an error of the engine says that the thing does not exist.
func (i *Images) Gone(err error) bool { return engine.KindOf(err) == engine.NotFound }

func (i *Images) find(ctx context.Context, name string) (engine.Image, error) {
	img, err := i.eng.ImageInspect(ctx, name)
	missing := engine.KindOf(err) == engine.NotFound && err != nil
	if i.pull == PullAlways || missing && i.pull == PullMissing {
		if pullErr := i.pullOnce(ctx, name); pullErr == nil {
			img, err = i.eng.ImageInspect(ctx, name)
		} else if err != nil {
			return img, job.Wrap(job.CodeImage, pullErr, "%q cannot be pulled", name)
		}
	}
	if err != nil {
		return img, nameError(name, err)
	}
	return img, i.accept(ctx, name, img)
}

func (i *Images) pullOnce(ctx context.Context, name string) error {
	i.mu.Lock()
	one := i.pulls[name]
	if one == nil {
		one = &sync.Mutex{}
		i.pulls[name] = one
	}
	i.mu.Unlock()
	one.Lock()
	defer one.Unlock()
	return i.eng.ImagePull(ctx, name, func(string) {})
}

func (i *Images) accept(ctx context.Context, name string, img engine.Image) error {
	if err := i.check(ctx, img); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.byID[img.ID] = img
	if name != "" {
		i.byName[name] = namedImage{img.ID, time.Now()}
	}
	return nil
}

func nameError(name string, err error) error {
	if Passing(err) {
		return job.Wrap(job.CodeEngine, err, "the engine cannot be asked for image %q", name)
	}
	if engine.KindOf(err) != engine.NotFound {
		return job.Wrap(job.CodeEngine, err, "the engine failed on image %q", name)
	}
	e := job.Errorf(job.CodeImage, "image", "the engine has no image %q", name)
	if strings.HasPrefix(name, "sandboxd/") {
		return e.WithHint("build it with 'make images'")
	}
	return e.WithHint("load it into the engine first: docker pull %s", name)
}

// Passing reports whether an error will pass by waiting: the engine away or late, or no uid free.
func Passing(err error) bool {
	var e *engine.Error
	if errors.As(err, &e) {
		return e.Kind == engine.Unavailable || e.Kind == engine.TimedOut
	}
	return errors.Is(err, ErrNoUID)
}
