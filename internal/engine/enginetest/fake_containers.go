package enginetest

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"sandboxd/internal/engine"
)

// record is one container of the fake, guarded by its mu.
type record struct {
	asked  engine.Container // normal, with what the image adds
	state  engine.State
	number int                // in order of creation
	end    context.CancelFunc // of the running hook
	life   int                // counts starts, so that a late hook cannot end a later life
}

// Create refuses what engine.Validate refuses, uncovered image volumes, missing bind sources, unknown images and
// runtimes, and names that are taken.
func (f *Fake) Create(ctx context.Context, c engine.Container) (engine.Created, error) {
	var out engine.Created
	err := f.call(ctx, Call{Op: engine.OpCreate, Ref: c.Name}, func() (err error) {
		out, err = f.createLocked(c)
		return err
	})
	if err != nil {
		return engine.Created{}, err
	}
	return out, nil
}

func (f *Fake) createLocked(c engine.Container) (engine.Created, error) {
	if err := engine.Validate(c); err != nil {
		return engine.Created{}, &engine.Error{Kind: engine.Invalid, Err: err}
	}
	img, exists := f.images[c.Image]
	if !exists {
		return engine.Created{}, because(engine.NotFound, "no such image: %s", c.Image)
	}
	if open := engine.Uncovered(img.Image, c); len(open) > 0 {
		return engine.Created{}, &engine.Error{Kind: engine.Invalid, Err: &engine.FieldError{Field: "Tmpfs", Want: "must shadow the image's volumes " + strings.Join(open, ", ")}}
	}
	if !slices.Contains(f.Says.Runtimes, c.Runtime) {
		return engine.Created{}, because(engine.Invalid, "unknown or invalid runtime name: %s", c.Runtime)
	}
	if err := sourcesExist(c.Binds); err != nil {
		return engine.Created{}, err
	}
	for _, r := range f.containers {
		if r.state.Name == c.Name {
			return engine.Created{}, because(engine.Conflict, "the name %s is in use by container %s", c.Name, r.state.ID)
		}
	}
	stored := engine.Inherited(c, img.Image)
	var warnings []string
	if f.OnCreate != nil {
		warnings = f.OnCreate(&stored)
	}
	id := randomHex(32)
	f.containers[id] = &record{
		asked: stored, number: len(f.calls),
		state: engine.State{ID: id, Name: c.Name, Status: "created", Labels: stored.Labels, Image: c.Image},
	}
	return engine.Created{ID: id, Warnings: warnings}, nil
}

func sourcesExist(binds []engine.Bind) error {
	for _, b := range binds {
		if _, err := os.Lstat(b.Source); err != nil {
			return because(engine.Invalid, "bind source path does not exist: %s", b.Source)
		}
	}
	return nil
}

// Inspect finds a container by id or name.
func (f *Fake) Inspect(ctx context.Context, id string) (engine.Container, engine.State, error) {
	var c engine.Container
	var state engine.State
	err := f.onContainer(ctx, Call{Op: engine.OpInspect, Ref: id}, func(r *record) error {
		c, state = engine.Normal(r.asked), r.state
		return nil
	})
	return c, state, err
}

// Remove is idempotent.
func (f *Fake) Remove(ctx context.Context, id string) error {
	c := Call{Op: engine.OpRemove, Ref: id}
	return f.call(ctx, c, func() error {
		if err := goodID(id); err != nil {
			return err
		}
		if r, err := f.findLocked(id); err == nil {
			f.removeLocked(r)
		}
		return nil
	})
}

func (f *Fake) removeLocked(r *record) {
	f.exitLocked(r, 137)
	delete(f.containers, r.state.ID)
	f.publishLocked(r, engine.Destroyed)
}

// List returns the containers that carry all labels, the newest first.
func (f *Fake) List(ctx context.Context, labels map[string]string) ([]engine.State, error) {
	var found []*record
	var out []engine.State
	err := f.call(ctx, Call{Op: engine.OpList}, func() error {
		if len(labels) == 0 {
			return because(engine.Invalid, "at least one label must be given")
		}
		for _, r := range f.containers {
			if carries(r.state.Labels, labels) {
				found = append(found, r)
			}
		}
		slices.SortFunc(found, func(a, b *record) int { return cmp.Compare(b.number, a.number) })
		for _, r := range found {
			s := r.state
			out = append(out, engine.State{ID: s.ID, Name: s.Name, Status: s.Status, Labels: s.Labels, Image: s.Image})
		}
		return nil
	})
	return out, err
}

func carries(has, wanted map[string]string) bool {
	for k, v := range wanted {
		if got, exists := has[k]; !exists || got != v {
			return false
		}
	}
	return true
}

func (f *Fake) onContainer(ctx context.Context, c Call, effect func(*record) error) error {
	return f.call(ctx, c, func() error {
		r, err := f.findLocked(c.Ref)
		if err != nil {
			return err
		}
		return effect(r)
	})
}

func (f *Fake) findLocked(id string) (*record, error) {
	if err := goodID(id); err != nil {
		return nil, err
	}
	if r, exists := f.containers[id]; exists {
		return r, nil
	}
	for _, r := range f.containers {
		if r.state.Name == id {
			return r, nil
		}
	}
	return nil, because(engine.NotFound, "no such container: %s", id)
}

func goodID(id string) error {
	if len(id) < 2 || strings.ContainsAny(id, "/ \x00") || strings.Contains(id, "..") {
		return because(engine.Invalid, "not a container id or name")
	}
	return nil
}
