package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// Create makes a container and starts nothing. What Validate refuses, and an image volume that nothing shadows, is
// Invalid with a *FieldError; a missing bind source is Invalid, a taken name Conflict, an unknown image NotFound. The
// engine's warnings are part of the answer: a limit may have been dropped with no more than that.
func (d *Docker) Create(ctx context.Context, c Container) (Created, error) {
	if err := Validate(c); err != nil {
		return Created{}, &Error{Kind: Invalid, Op: OpCreate, Ref: c.Name, Err: err}
	}
	var out Created
	err := d.call(ctx, OpCreate, c.Name, d.opt.CreateTimeout, func(ctx context.Context, s *session) error {
		img, err := imageOf(ctx, s, c.Image)
		if err != nil {
			return err
		}
		if open := Uncovered(img, c); len(open) > 0 {
			return &Error{Kind: Invalid, Op: OpCreate, Ref: c.Name, Err: uncovered(open)}
		}
		config, host, network := render(c)
		answer, err := s.ContainerCreate(ctx, config, host, network, nil, c.Name)
		if err == nil && answer.ID == "" {
			err = errIncomplete
		}
		out = Created{ID: answer.ID, Warnings: copied(answer.Warnings)}
		return err
	})
	if err != nil {
		return Created{}, err
	}
	return out, nil
}

func uncovered(volumes []string) error {
	return &FieldError{"Tmpfs", "must shadow the image's volumes " + oneLine(strings.Join(volumes, ", "))}
}

// Inspect returns the engine's record of a container, by id or name, in normal form, and its state. The engine adds the
// image's labels and its variables that were not given.
func (d *Docker) Inspect(ctx context.Context, id string) (Container, State, error) {
	var c Container
	var state State
	err := d.onContainer(ctx, OpInspect, id, d.opt.CallTimeout, func(ctx context.Context, s *session) error {
		answer, err := s.ContainerInspect(ctx, id)
		if err == nil {
			c, state, err = read(answer)
		}
		return err
	})
	if err != nil {
		return Container{}, State{}, err
	}
	return c, state, nil
}

// Start starts a created container; starting a running one does nothing. A command that cannot be run is Invalid, and
// the state keeps the engine's words.
func (d *Docker) Start(ctx context.Context, id string) error {
	return d.onContainer(ctx, OpStart, id, d.opt.StartTimeout, func(ctx context.Context, s *session) error {
		return s.ContainerStart(ctx, id, container.StartOptions{})
	})
}

// Kill sends a signal, by name, to the container's init. A container that does not run is Conflict. SIGKILL returns when
// the container has ended; the engine gives up after 12 s with Internal.
func (d *Docker) Kill(ctx context.Context, id, signal string) error {
	if signal == "" {
		return &Error{Kind: Invalid, Op: OpKill, Ref: id, Err: fmt.Errorf("no signal given")}
	}
	return d.onContainer(ctx, OpKill, id, d.opt.CallTimeout, func(ctx context.Context, s *session) error {
		return s.ContainerKill(ctx, id, signal)
	})
}

// Waits between the looks at a removal that someone else has begun.
const (
	removeWaitMin = 10 * time.Millisecond
	removeWaitMax = 500 * time.Millisecond
)

// Remove kills and removes a container with its anonymous volumes. It is idempotent: one that is gone already is no
// error, and a removal under way is waited for.
func (d *Docker) Remove(ctx context.Context, id string) error {
	return d.onContainer(ctx, OpRemove, id, d.opt.RemoveTimeout, func(ctx context.Context, s *session) error {
		for wait := removeWaitMin; ; wait = min(2*wait, removeWaitMax) {
			err := s.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
			if errdefs.IsNotFound(err) {
				return nil
			}
			// By force, a conflict is a removal in progress and nothing else.
			if !errdefs.IsConflict(err) {
				return err
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}

// List returns all containers that carry every given label with its value, those created or exited included. At least
// one label is needed: other people's containers are none of our business.
func (d *Docker) List(ctx context.Context, labels map[string]string) ([]State, error) {
	match, err := byLabels(OpList, labels)
	if err != nil {
		return nil, err
	}
	var out []State
	err = d.call(ctx, OpList, "", d.opt.CallTimeout, func(ctx context.Context, s *session) error {
		answer, err := s.ContainerList(ctx, container.ListOptions{All: true, Filters: match})
		for _, c := range answer {
			out = append(out, State{ID: c.ID, Name: nameOf(c.Names), Status: c.State, Labels: c.Labels, Image: c.ImageID})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func byLabels(op string, labels map[string]string) (filters.Args, error) {
	if len(labels) == 0 {
		return filters.Args{}, &Error{Kind: Invalid, Op: op, Err: fmt.Errorf("at least one label must be given")}
	}
	match := filters.NewArgs()
	for k, v := range labels {
		match.Add("label", k+"="+v)
	}
	return match, nil
}

func nameOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return strings.TrimPrefix(names[0], "/")
}

// onContainer is call for one container, whose id or name becomes part of a URL.
func (d *Docker) onContainer(ctx context.Context, op, id string, limit time.Duration, fn func(context.Context, *session) error) error {
	if !nameForm.MatchString(id) {
		return &Error{Kind: Invalid, Op: op, Ref: oneLine(id), Err: fmt.Errorf("not a container id or name")}
	}
	return d.call(ctx, op, id, limit, fn)
}
