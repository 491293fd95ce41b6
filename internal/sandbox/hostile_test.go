package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/engine"
	"sandboxd/internal/engine/enginetest"
	"sandboxd/internal/sandbox"
)

// loadImage loads an image into the real engine for one test.
func loadImage(t *testing.T, spec enginetest.ImageSpec) engine.Image {
	t.Helper()
	d := realEngine(t, "")
	spec.Tag = "sandboxd-test/" + sandbox.NewSlotName() + ":1"
	mustDo(t, d.ImageLoad(t.Context(), bytes.NewReader(enginetest.Archive(spec))))
	img, err := d.ImageInspect(t.Context(), spec.Tag)
	mustDo(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		mustDo(t, d.ImageRemove(ctx, spec.Tag))
	})
	return img
}

func TestHostileImageChangesNothing(t *testing.T) {
	r := openRoom(t, nil, nil)
	shell, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Skip("needs a static busybox: ", err)
	}
	img := loadImage(t, enginetest.ImageSpec{
		Files: map[string][]byte{"/bin/sh": shell},
		Dirs:  []string{"/vol"},
		Env: []string{"LD_PRELOAD=/evil.so", "GODEBUG=gctrace=1", "GOMEMLIMIT=1KiB", "GOMAXPROCS=1000", "PATH=/evil", "HOME=/evil",
			"HOSTNAME=evil", "OTHER_X=1"},
		User: "0", WorkingDir: "/proc/self/fd/8", Entrypoint: []string{"/evil"}, Cmd: []string{"evil"},
		Volumes: []string{"/vol", "/tmp", "/new/volume"}, Health: []string{"CMD", "/evil"}, StopSignal: "SIGSTOP",
		Labels: map[string]string{"sandboxd.job": "evil", "sandboxd.instance": "evil", "sandboxd.slot": "evil", "other": "kept"},
	})
	mustDo(t, r.CheckImage(t.Context(), img))
	req := r.request()
	req.Image, req.Posture.ImageID = img, img.ID
	sl := r.fill(t, req)
	state, err := sl.Alive(t.Context())
	if err != nil || state.Labels[sandbox.LabelInstance] != r.instance || state.Labels[sandbox.LabelSlot] != sl.Name() {
		t.Errorf("%+v %v", state, err)
	}
	command(t, sl, req.Posture, `/bin/sh -c 'export' ; for d in /vol /new/volume; do dd if=/dev/zero of=$d/x bs=64k 2>&1 | tail -n 1 | cut -d' ' -f1; done`)
	out, ex := follow(t, sl)
	if strings.Contains(out, "evil") || strings.Contains(out, "OTHER_X") || strings.Contains(out, "GODEBUG") {
		t.Errorf("output %q %+v", out, ex)
	}
	mounts := strings.Join(sl.Evidence().Mounts, "\n")
	for _, v := range []string{"/vol tmpfs rw,nosuid,nodev,noexec", "/new/volume tmpfs rw,nosuid,nodev,noexec"} {
		if !strings.Contains(mounts, v) {
			t.Errorf("%s is not shadowed: %s", v, mounts)
		}
	}
}

// TestStuckProcessQuarantinesItsUID: a container whose processes cannot die. A freezer above the container's own
// stands in for a file system that does not answer; both leave processes in state D.
func TestStuckProcessQuarantinesItsUID(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the engine to give up")
	}
	r := openRoom(t, nil, func(c *sandbox.Config) { c.UIDCount, c.CleanupTimeout = 8, 40*time.Second })
	freezer := "/sys/fs/cgroup/freezer/sandboxd-" + r.instance[:8] + "/freezer.state"
	if _, err := os.Stat(filepath.Dir(filepath.Dir(freezer))); err != nil {
		t.Skip("needs the freezer of cgroup v1: ", err)
	}
	sl := r.fill(t, r.request())
	command(t, sl, r.posture(), "sleep 100 & sleep 100; true")
	within(t, 5*time.Second, "it runs", func() bool { return pids(t, sl) == 3 })
	mustDo(t, os.WriteFile(freezer, []byte("FROZEN"), 0))
	thaw := func() { _ = os.WriteFile(freezer, []byte("THAWED"), 0) }
	t.Cleanup(thaw)

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var stuck *sandbox.StuckError
	if err := sl.KillJob(ctx); !errors.As(err, &stuck) || len(stuck.Pids) != 3 || stuck.Slot != sl.Name() {
		t.Errorf("kill: %v", err)
	}
	began := time.Now()
	if err := sl.Remove(t.Context()); !errors.As(err, &stuck) {
		t.Fatalf("removal: %v", err)
	}
	t.Logf("removal gave up after %v", time.Since(began))
	if rec := sl.Record(); rec.State != sandbox.StateQuarantined || rec.Error == "" {
		t.Errorf("%+v", rec)
	}
	if _, err := r.Fill(t.Context(), r.request()); !errors.Is(err, sandbox.ErrNoUID) {
		t.Errorf("another slot: %v", err)
	}
	thaw()
	within(t, 60*time.Second, "it is removed", func() bool { return r.RemoveByRecord(t.Context(), sl.Record()) == nil })
	mustDo(t, sl.Remove(t.Context())) // what is gone is gone
}
