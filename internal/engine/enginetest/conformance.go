package enginetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/engine"
)

// ImageLoader is what Load needs of an engine.
type ImageLoader interface {
	ImageLoad(ctx context.Context, archive io.Reader) error
	ImageInspect(ctx context.Context, ref string) (engine.Image, error)
	ImageRemove(ctx context.Context, ref string) error
}

// Remover is what Sweep needs of an engine.
type Remover interface {
	List(ctx context.Context, labels map[string]string) ([]engine.State, error)
	Remove(ctx context.Context, id string) error
}

// Engine is all that engine.Docker and Fake have in common. Users of an engine declare the few methods they need.
type Engine interface {
	ImageLoader
	Remover
	Info(ctx context.Context) (engine.Info, error)
	Ping(ctx context.Context) error
	Create(ctx context.Context, c engine.Container) (engine.Created, error)
	Inspect(ctx context.Context, id string) (engine.Container, engine.State, error)
	Start(ctx context.Context, id string) error
	Kill(ctx context.Context, id, signal string) error
	Events(ctx context.Context, labels map[string]string) (<-chan engine.Event, error)
	ImagePull(ctx context.Context, ref string, progress func(string)) error
	ImageSave(ctx context.Context, id string) (io.ReadCloser, error)
}

var (
	_ Engine = (*Fake)(nil)
	_ Engine = (*engine.Docker)(nil)
)

// Conformance runs the cases every engine passes. The factory's engine must run `exit N` and `sleep N` as a Sample's
// script, and must find programs that are missing from an image.
func Conformance(t *testing.T, factory func(t *testing.T) Engine) {
	s := &suite{e: factory(t), tag: Tag()}
	var err error
	if s.info, err = s.e.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.plain = Load(t, s.e, ImageSpec{})
	Sweep(t, s.e, s.tag)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *suite)
	}{
		{"info and ping", infoAndPing},
		{"an inspection finds what was asked, field by field", roundTrip},
		{"the image adds variables and labels and nothing else", imageAdds},
		{"a container runs, is killed, and keeps its exit code", lifecycle},
		{"exit codes", exitCodes},
		{"a command that cannot be run", badCommand},
		{"kinds of a kill's failures", killKinds},
		{"removing is idempotent in every state", removing},
		{"removing from several sides at once", removingTogether},
		{"a name is taken until its container is removed", nameTaken},
		{"an unknown image is not found", unknownImage},
		{"an unknown runtime is refused", unknownRuntime},
		{"a missing bind source is refused and not created", missingSource},
		{"a bind source that vanishes fails the start and is not created", vanishedSource},
		{"refused settings make no container", refusedSettings},
		{"a list finds by label, whatever the state", listing},
		{"image volumes must be shadowed, and are", volumes},
		{"an image is described in full", describedImage},
		{"an image is saved as an archive", savedImage},
		{"unusable names and archives", unusableImages},
		{"events tell of deaths and removals", eventStream},
		{"a cancelled call ends at once", cancelledCall},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

// suite is what the cases share.
type suite struct {
	e     Engine
	tag   string // value of the TestLabel
	info  engine.Info
	plain engine.Image
}

// sample is a container of this suite.
func (s *suite) sample(script string) engine.Container {
	return Sample(s.plain, s.info, s.tag, script)
}

func (s *suite) create(t *testing.T, c engine.Container) string {
	t.Helper()
	made, err := s.e.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Warnings) > 0 {
		t.Fatalf("the engine warns; a slot on it would be refused: %q", made.Warnings)
	}
	if len(made.ID) != 64 {
		t.Fatalf("id %q, want 64 hex digits", made.ID)
	}
	t.Cleanup(func() {
		if err := s.e.Remove(context.WithoutCancel(t.Context()), made.ID); err != nil {
			t.Error(err)
		}
	})
	return made.ID
}

func (s *suite) start(t *testing.T, script string) string {
	t.Helper()
	id := s.create(t, s.sample(script))
	if err := s.e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *suite) state(t *testing.T, id string) engine.State {
	t.Helper()
	_, state, err := s.e.Inspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// ended waits for a container to exit.
func (s *suite) ended(t *testing.T, id string) engine.State {
	t.Helper()
	for range 600 {
		if state := s.state(t, id); state.Status == "exited" {
			return state
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("container %s did not exit within 30 s", id)
	return engine.State{}
}

func wantKind(t *testing.T, err error, want engine.Kind) {
	t.Helper()
	if err == nil || engine.KindOf(err) != want {
		t.Fatalf("error %v, want kind %s", err, want)
	}
	var e *engine.Error
	if !errors.As(err, &e) || e.Op == "" {
		t.Fatalf("error %#v, want an *engine.Error with its call", err)
	}
}

func wantSame(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("want -, got +:\n%s", diff)
	}
}

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }
