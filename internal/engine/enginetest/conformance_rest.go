package enginetest

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/engine"
)

func infoAndPing(t *testing.T, s *suite) {
	if err := s.e.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := s.info
	if i.Version == "" || i.APIVersion == "" || i.CgroupDriver == "" || i.CgroupVersion < 1 || i.DefaultRT == "" || len(i.Runtimes) == 0 ||
		i.StorageDriver == "" || i.RootDir == "" || i.OSType != "linux" || i.Arch == "" {
		t.Fatalf("info %+v is not complete", i)
	}
}

func describedImage(t *testing.T, s *suite) {
	spec := ImageSpec{
		Env: []string{"A=1"}, User: "7:8", WorkingDir: "/bin", Entrypoint: []string{"/bin/busybox"}, Cmd: []string{"true"},
		Volumes: []string{"/data", "/a"}, Labels: map[string]string{"k": "v"}, Health: []string{"CMD", "true"},
	}
	img := Load(t, s.e, spec)
	if !strings.HasPrefix(img.ID, "sha256:") || len(img.RepoTags) != 1 || img.OS != "linux" || img.Arch == "" || img.Size <= 0 {
		t.Fatalf("image %+v is not complete", img)
	}
	wantSame(t, engine.Image{
		ID: img.ID, RepoTags: img.RepoTags, RepoDigests: img.RepoDigests, OS: img.OS, Arch: img.Arch, Size: img.Size,
		Volumes: []string{"/a", "/data"}, Env: []string{"A=1", "TEST_IMAGE=" + img.RepoTags[0]}, User: "7:8", WorkingDir: "/bin",
		Entrypoint: []string{"/bin/busybox"}, Cmd: []string{"true"}, Healthcheck: true, Labels: map[string]string{"k": "v"}, Layers: 1,
	}, img)
	byID, err := s.e.ImageInspect(t.Context(), img.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, img, byID)
	if s.plain.Healthcheck || s.plain.Volumes != nil || s.plain.Labels != nil || s.plain.Entrypoint != nil {
		t.Fatalf("image %+v, want one without settings", s.plain)
	}
}

func savedImage(t *testing.T, s *suite) {
	archive, err := s.e.ImageSave(t.Context(), s.plain.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	found := false
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found = found || h.Name == "manifest.json"
	}
	if !found {
		t.Fatal("no manifest.json in the archive")
	}
	// An engine may find out only after it has begun to answer.
	archive, err = s.e.ImageSave(t.Context(), "sha256:"+randomHex(32))
	if err == nil {
		archive.Close()
	}
	wantKind(t, err, engine.NotFound)
}

func unusableImages(t *testing.T, s *suite) {
	_, err := s.e.ImageInspect(t.Context(), "sandboxd-test/none:1")
	wantKind(t, err, engine.NotFound)
	for _, ref := range []string{"", "a b", "../containers/x", "a//b", "a?b"} {
		_, err := s.e.ImageInspect(t.Context(), ref)
		wantKind(t, err, engine.Invalid)
		_, err = s.e.ImageSave(t.Context(), ref)
		wantKind(t, err, engine.Invalid)
		wantKind(t, s.e.ImagePull(t.Context(), ref, nil), engine.Invalid)
		wantKind(t, s.e.ImageRemove(t.Context(), ref), engine.Invalid)
	}
	if err := s.e.ImageRemove(t.Context(), "sandboxd-test/none:1"); err != nil {
		t.Fatal(err)
	}
	if err := s.e.ImageLoad(t.Context(), strings.NewReader("this is no archive")); err == nil {
		t.Fatal("a text was loaded as an image")
	}
	// A registry where nobody listens.
	if err := s.e.ImagePull(t.Context(), "127.0.0.1:1/sandboxd-test/none:1", nil); err == nil {
		t.Fatal("an image was pulled from nowhere")
	}
}

func eventStream(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := s.sample("exit 3")
	c.Labels["group"] = randomHex(6)
	stream, err := s.e.Events(ctx, map[string]string{TestLabel: s.tag, "group": c.Labels["group"]})
	if err != nil {
		t.Fatal(err)
	}
	other := s.start(t, "exit 4")
	id := s.create(t, c)
	if err := s.e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.ended(t, id)
	s.ended(t, other)
	if err := s.e.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for _, want := range []engine.Event{{Action: engine.Died, ExitCode: 3}, {Action: engine.Destroyed}} {
		select {
		case got := <-stream:
			if got.ID != id || got.Name != c.Name || got.Action != want.Action || got.ExitCode != want.ExitCode || got.Labels["group"] != c.Labels["group"] || time.Since(got.At) > time.Hour {
				t.Fatalf("event %+v, want %+v of %s", got, want, id)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no event %+v", want)
		}
	}
	cancel()
	select {
	case e, isOpen := <-stream:
		if isOpen {
			t.Fatalf("event %+v after the end", e)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the stream does not end with its context")
	}
	_, err = s.e.Events(t.Context(), nil)
	wantKind(t, err, engine.Invalid)
}

func cancelledCall(t *testing.T, s *suite) {
	cause := errors.New("the test says so")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, _, err := s.e.Inspect(ctx, "some-container")
	wantKind(t, err, engine.TimedOut)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
		t.Fatalf("error %v, want the context's and its cause in the chain", err)
	}
}
