package enginetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/engine"
)

// Real returns a client of the engine of this host, closed at the test's end. Where none answers the test is skipped, or
// fails when SANDBOXD_TEST_ENGINE=required.
func Real(t testing.TB) *engine.Docker {
	t.Helper()
	d := engine.New(engine.Options{})
	if err := d.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := d.Ping(ctx); err != nil {
		if os.Getenv("SANDBOXD_TEST_ENGINE") == "required" {
			t.Fatalf("this test needs an engine (make engine): %v", err)
		}
		t.Skipf("this test needs an engine (make engine): %v", err)
	}
	return d
}

// Load loads a test image under a tag of its own and removes it at the test's end.
func Load(t testing.TB, e ImageLoader, s ImageSpec) engine.Image {
	t.Helper()
	if s.Tag == "" {
		s.Tag = "sandboxd-test/" + randomHex(6) + ":1"
	}
	if s.Files == nil {
		program, _ := Program(t)
		s.Files = map[string][]byte{ProgramPath: program}
	}
	// Its own environment makes the image differ from other tests' images, so that none removes another's.
	s.Env = append(s.Env, "TEST_IMAGE="+s.Tag)
	if err := e.ImageLoad(t.Context(), newReader(Archive(s))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.ImageRemove(context.WithoutCancel(t.Context()), s.Tag); err != nil {
			t.Error(err)
		}
	})
	img, err := e.ImageInspect(t.Context(), s.Tag)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// Sweep removes, at the test's end, every container with this TestLabel, and their parent cgroup.
func Sweep(t testing.TB, e Remover, tag string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		left, err := e.List(ctx, map[string]string{TestLabel: tag})
		if err != nil {
			t.Error(err)
		}
		for _, s := range left {
			if err := e.Remove(ctx, s.ID); err != nil {
				t.Error(err)
			}
		}
		// Of the cgroupfs driver, v1 and v2. One that holds something yet is not removed.
		dirs, _ := filepath.Glob("/sys/fs/cgroup/*/" + cgroupName + tag)
		for _, dir := range append(dirs, "/sys/fs/cgroup/"+cgroupName+tag) {
			_ = unix.Rmdir(dir)
		}
	})
}
