package sandbox_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sandboxd/internal/engine"
	"sandboxd/internal/job"
	"sandboxd/internal/sandbox"
)

// stubEngine answers Info and ImageSave; everything else is a nil call.
type stubEngine struct {
	sandbox.Engine
	info  engine.Info
	err   error
	saved func() (io.ReadCloser, error)
	saves atomic.Int64
}

func (s *stubEngine) Info(context.Context) (engine.Info, error) { return s.info, s.err }

func (s *stubEngine) ImageSave(context.Context, string) (io.ReadCloser, error) {
	s.saves.Add(1)
	return s.saved()
}

func cgroupfsV1() engine.Info {
	return engine.Info{OSType: "linux", Runtimes: []string{"runc"}, CgroupDriver: "cgroupfs", CgroupVersion: 1, RootDir: "/var/lib/docker"}
}

func TestOpenRefusesAHostThatCannotHoldTheWall(t *testing.T) {
	ids := func(text string) func(*testing.T, *sandbox.Config, *stubEngine) {
		return func(t *testing.T, c *sandbox.Config, _ *stubEngine) {
			file := filepath.Join(t.TempDir(), "subuid")
			if err := os.WriteFile(file, fmt.Appendf(nil, text, c.UIDFirst), 0o600); err != nil {
				t.Fatal(err)
			}
			c.PasswdFiles = []string{file}
		}
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *sandbox.Config, *stubEngine)
		want   string
	}{
		"range meets a user's subordinate ids": {ids("alice:%d:1\n"), "meets"},
		"subuid cannot be read":                {ids("alice:%d:x\n"), "line 1"},
		"stride too small":                     {func(_ *testing.T, c *sandbox.Config, _ *stubEngine) { c.UIDStride = 4 }, "stride"},
		"range over the end":                   {func(_ *testing.T, c *sandbox.Config, _ *stubEngine) { c.UIDFirst = 1<<32 - 10 }, "range"},
		"range of accounts":                    {func(_ *testing.T, c *sandbox.Config, _ *stubEngine) { c.UIDFirst = 1000 }, "range"},
		"userns-remap":                         {func(_ *testing.T, _ *sandbox.Config, e *stubEngine) { e.info.SecurityOpts = []string{"name=userns"} }, "userns"},
		"rootless":                             {func(_ *testing.T, _ *sandbox.Config, e *stubEngine) { e.info.SecurityOpts = []string{"name=rootless"} }, "rootless"},
		"no runc":                              {func(_ *testing.T, _ *sandbox.Config, e *stubEngine) { e.info.Runtimes = []string{"crun"} }, "runc"},
		"windows":                              {func(_ *testing.T, _ *sandbox.Config, e *stubEngine) { e.info.OSType = "windows" }, "windows"},
		"cgroup version not mounted":           {func(_ *testing.T, _ *sandbox.Config, e *stubEngine) { e.info.CgroupVersion = 3 }, "cgroup"},
		"parent of the other driver":           {func(_ *testing.T, c *sandbox.Config, _ *stubEngine) { c.CgroupParent = "x.slice" }, "driver"},
		"engine away":                          {func(_ *testing.T, _ *sandbox.Config, e *stubEngine) { e.err = errFlaky }, "flaky"},
		"relative run directory":               {func(_ *testing.T, c *sandbox.Config, _ *stubEngine) { c.RunDir = "run" }, "absolute"},
		"long run directory":                   {func(_ *testing.T, c *sandbox.Config, _ *stubEngine) { c.RunDir = "/tmp/" + strings.Repeat("x", 90) }, "too long"},
		"run directory of others": {func(t *testing.T, c *sandbox.Config, _ *stubEngine) {
			mustDo(t, os.MkdirAll(c.RunDir, 0o755), os.Chown(c.RunDir, 12345, 0))
		}, "belongs to uid 12345"},
		"run directory for all": {func(t *testing.T, c *sandbox.Config, _ *stubEngine) {
			mustDo(t, os.MkdirAll(c.RunDir, 0o755), os.Chmod(c.RunDir, 0o777))
		}, "written by others"},
		"run directory in a folder for all": {func(t *testing.T, c *sandbox.Config, _ *stubEngine) {
			mustDo(t, os.MkdirAll(c.RunDir, 0o755), os.Chmod(filepath.Dir(c.RunDir), 0o777))
		}, "written by others"},
		"run directory is a link": {func(t *testing.T, c *sandbox.Config, _ *stubEngine) {
			mustDo(t, os.Symlink("/etc", c.RunDir))
		}, "is a link"},
		"slots is a link": {func(t *testing.T, c *sandbox.Config, _ *stubEngine) {
			mustDo(t, os.MkdirAll(c.RunDir, 0o755), os.Symlink("/etc", filepath.Join(c.RunDir, "slots")))
		}, "is a link"},
		"init is no program": {func(t *testing.T, c *sandbox.Config, _ *stubEngine) {
			c.InitPath = filepath.Join(t.TempDir(), "init")
			mustDo(t, os.WriteFile(c.InitPath, []byte("#!/bin/sh\n"), 0o755))
		}, "no program"},
		"init is linked dynamically": {func(_ *testing.T, c *sandbox.Config, _ *stubEngine) { c.InitPath = "/bin/ls" }, "dynamically"},
		"short instance":             {func(_ *testing.T, c *sandbox.Config, _ *stubEngine) { c.Instance = "short" }, "instance"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := newConfig(t)
			eng := &stubEngine{info: cgroupfsV1()}
			if _, err := os.Stat("/sys/fs/cgroup/memory"); err != nil {
				eng.info.CgroupVersion = 2
			}
			c.change(t, &cfg, eng)
			s := sandbox.New(cfg, eng)
			if err := s.Open(t.Context(), nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an error about %q", err, c.want)
			}
			if _, err := s.Fill(t.Context(), sandbox.Request{Slot: sandbox.NewSlotName()}); err == nil {
				t.Error("a fill without an open")
			}
		})
	}
}

func mustDo(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestInstalledBinariesCanBeRunAndNotRead(t *testing.T) {
	cfg, _ := newConfig(t)
	s := sandbox.New(cfg, &stubEngine{info: cgroupfsV1()})
	mustDo(t, s.Open(t.Context(), nil), s.Open(t.Context(), nil))
	for _, name := range []string{"sbx-init", "sbx"} {
		st, err := os.Lstat(filepath.Join(cfg.RunDir, "bin", name))
		if err != nil || st.Mode() != 0o111 {
			t.Errorf("%s: %v %v", name, st.Mode(), err)
		}
	}
	for dir, want := range map[string]os.FileMode{"": 0o711, "bin": 0o700, "slots": 0o700} {
		if st, err := os.Lstat(filepath.Join(cfg.RunDir, dir)); err != nil || st.Mode().Perm() != want {
			t.Errorf("%q: %v %v", dir, st.Mode(), err)
		}
	}
}

// file is one entry of a layer.
type file struct {
	name string
	kind byte
	link string
}

// archive writes an image archive as `image save` does.
func archive(t *testing.T, layers ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(name string, content []byte) {
		mustDo(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}))
		_, err := w.Write(content)
		mustDo(t, err)
	}
	var names []string
	for i, l := range layers {
		name := fmt.Sprintf("%d/layer.tar", i)
		put(name, l)
		put(fmt.Sprintf("%d/json", i), []byte("{}"))
		names = append(names, `"`+name+`"`)
	}
	put("manifest.json", []byte(`[{"Config":"x.json","Layers":[`+strings.Join(names, ",")+`]}]`))
	mustDo(t, w.Close())
	return b.Bytes()
}

func layer(t *testing.T, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		mustDo(t, w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o755, Typeflag: f.kind, Linkname: f.link}))
	}
	mustDo(t, w.Close())
	return b.Bytes()
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	mustDo(t, err, w.Close())
	return out.Bytes()
}

func TestCheckImage(t *testing.T) {
	good := layer(t, file{"dev/", tar.TypeDir, ""}, file{"./tmp", tar.TypeDir, ""}, file{"bin/sh", tar.TypeSymlink, "/bin/busybox"},
		file{"dev/fd", tar.TypeSymlink, "/proc/self/fd"}, file{"var/run", tar.TypeSymlink, "/run"}, file{"sbx/bin", tar.TypeDir, ""})
	link := func(name string) []byte { return layer(t, file{name, tar.TypeSymlink, "/etc"}) }
	for name, c := range map[string]struct {
		archive []byte
		change  func(*engine.Image)
		want    string // "" for a fit one
	}{
		"fit":                    {archive(t, good), nil, ""},
		"fit by gzip":            {archive(t, gzipped(t, good)), nil, ""},
		"an empty layer":         {archive(t, layer(t), good), nil, ""},
		"dev is a link":          {archive(t, good, link("dev")), nil, "/dev"},
		"proc is a link":         {archive(t, link("./proc")), nil, "/proc"},
		"sys by dots":            {archive(t, link("x/../sys")), nil, "/sys"},
		"workspace is a link":    {archive(t, link("/workspace")), nil, "/workspace"},
		"home is a link":         {archive(t, link("home")), nil, "/home"},
		"home/job is a link":     {archive(t, link("home/job/")), nil, "/home/job"},
		"sbx/slot is a link":     {archive(t, gzipped(t, link("sbx/slot"))), nil, "/sbx/slot"},
		"a link below mnt":       {archive(t, link("mnt/data")), nil, "/mnt/data"},
		"a hard link in sbx":     {archive(t, layer(t, file{"sbx/bin/sbx", tar.TypeLink, "etc/passwd"})), nil, "hard link"},
		"tmp is a file":          {archive(t, layer(t, file{"tmp", tar.TypeReg, ""})), nil, "/tmp"},
		"out is a device":        {archive(t, layer(t, file{"out", tar.TypeBlock, ""})), nil, "/out"},
		"resolv.conf is a link":  {archive(t, link("etc/resolv.conf")), nil, "/etc/resolv.conf"},
		"no manifest":            {func() []byte { b := layer(t); return b }(), nil, "manifest"},
		"layer in another form":  {archive(t, bytes.Repeat([]byte("zstd"), 500)), nil, "cannot be looked into"},
		"another platform":       {archive(t, good), func(i *engine.Image) { i.Arch = "sparc" }, "sparc"},
		"too many layers":        {archive(t, good), func(i *engine.Image) { i.Layers = 126 }, "layers"},
		"too many labels":        {archive(t, good), func(i *engine.Image) { i.Labels = many(1001) }, "labels"},
		"a megabyte of env":      {archive(t, good), func(i *engine.Image) { i.Env = []string{"X=" + strings.Repeat("x", 1<<20)} }, "variables"},
		"a variable of no name":  {archive(t, good), func(i *engine.Image) { i.Env = []string{"=x"} }, "NAME=VALUE"},
		"a volume over sbx":      {archive(t, good), func(i *engine.Image) { i.Volumes = []string{"/sbx"} }, "volume"},
		"volumes to be shadowed": {archive(t, good), func(i *engine.Image) { i.Volumes = []string{"/data1", "/tmp"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			eng := &stubEngine{saved: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.archive)), nil }}
			s := sandbox.New(sandbox.Config{}, eng)
			img := engine.Image{ID: "sha256:1", OS: "linux", Arch: runtime.GOARCH, Layers: 2}
			if c.change != nil {
				c.change(&img)
			}
			for range 2 {
				err := s.CheckImage(t.Context(), img)
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Fatalf("got %v, want %q", err, c.want)
				}
				if err != nil && job.CodeOf(err) != job.CodeImage {
					t.Errorf("code %s", job.CodeOf(err))
				}
			}
			if eng.saves.Load() > 1 {
				t.Error("looked at twice")
			}
		})
	}
}

func many(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprint(i)] = ""
	}
	return out
}

func TestCheckImageAsksAgainAfterAFailureAndOnceForMany(t *testing.T) {
	good := archive(t, layer(t))
	fail := atomic.Bool{}
	fail.Store(true)
	eng := &stubEngine{saved: func() (io.ReadCloser, error) {
		if fail.Load() {
			return nil, errFlaky
		}
		return io.NopCloser(bytes.NewReader(good)), nil
	}}
	s := sandbox.New(sandbox.Config{}, eng)
	img := engine.Image{ID: "sha256:1", OS: "linux", Arch: runtime.GOARCH}
	if err := s.CheckImage(t.Context(), img); !errors.Is(err, errFlaky) {
		t.Fatalf("got %v", err)
	}
	fail.Store(false)
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if err := s.CheckImage(t.Context(), img); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := eng.saves.Load(); n != 2 {
		t.Errorf("%d looks", n)
	}
}

func TestImagesOfThisRepositoryAreFit(t *testing.T) {
	r := openRoom(t, nil, nil)
	for _, name := range []string{"sandboxd/tiny:latest", "sandboxd/base:latest"} {
		img, err := r.eng.(*engine.Docker).ImageInspect(t.Context(), name)
		if err != nil {
			t.Log(name, ": ", err)
			continue
		}
		if err := r.CheckImage(t.Context(), img); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSweepReportsForeignContainersAndTouchesNone(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	c, err := sandbox.Render(r.posture(), sandbox.Facts{Instance: r.instance, Slot: "stranger1", UID: 1234567, CgroupParent: "/sandboxd-" + r.instance[:8],
		InitFile: "/bin/true", SbxFile: "/bin/true", SlotDir: "/tmp", Seccomp: "{}", HostMilliCPUs: 8000})
	mustDo(t, err)
	c.SecurityOpt = nil
	made, err := r.eng.Create(t.Context(), c)
	mustDo(t, err)
	defer func() { mustDo(t, r.eng.Remove(t.Context(), made.ID)) }()
	strays, err := r.Sweep(t.Context(), r.rows.all())
	mustDo(t, err)
	if len(strays.Containers) != 1 || !strings.Contains(strays.Containers[0], "stranger1") || len(strays.Removed) != 0 {
		t.Errorf("%+v", strays)
	}
	// A record that names a container of other labels does not make it ours.
	rec := sl.Record()
	rec.Slot, rec.ContainerID = "another12", made.ID
	if err := r.RemoveByRecord(t.Context(), rec); !errors.Is(err, sandbox.ErrNotOurs) {
		t.Errorf("got %v", err)
	}
	mustDo(t, r.rows.record(t.Context(), sandbox.SlotRecord{Slot: "another12", State: sandbox.StateGone}))
	if _, state, err := r.eng.Inspect(t.Context(), made.ID); err != nil || state.Status != "created" {
		t.Errorf("%+v %v", state, err)
	}
}

func TestRecordOfALiveSlotIsNotRemoved(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	if err := r.RemoveByRecord(t.Context(), sl.Record()); err == nil {
		t.Fatal("removed a slot in use")
	}
	if state, err := sl.Alive(t.Context()); err != nil || state.Status != "running" {
		t.Errorf("%+v %v", state, err)
	}
}

func TestLaterDaemonRemovesByRecordInEveryState(t *testing.T) {
	r := openRoom(t, nil, nil)
	for _, state := range []sandbox.State{sandbox.StateIntent, sandbox.StateCreated, sandbox.StateStarted, sandbox.StateReady} {
		// The daemon dies right after the record: nothing of its own clean-up runs.
		crashed := errors.New("crash")
		seen := false
		r.rows.fail = func(rec sandbox.SlotRecord) error {
			if seen {
				return crashed
			}
			seen = rec.State == state
			return nil
		}
		broken := sandbox.New(r.cfg, &noRemoval{Engine: r.eng})
		mustDo(t, broken.Open(t.Context(), nil))
		sl, err := broken.Fill(t.Context(), r.request())
		if err == nil {
			_ = sl.Conn().Close()
		}
		r.rows.fail = nil
		left := r.rows.all()
		if len(left) != 1 {
			t.Fatalf("%s: records %v", state, left)
		}
		later := sandbox.New(r.cfg, r.eng)
		mustDo(t, later.Open(t.Context(), left), later.RemoveByRecord(t.Context(), left[0]), later.RemoveByRecord(t.Context(), left[0]))
	}
}

// noRemoval is an engine whose removals are lost.
type noRemoval struct{ sandbox.Engine }

func (noRemoval) Remove(context.Context, string) error { return errFlaky }
