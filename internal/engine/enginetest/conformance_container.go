package enginetest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"sandboxd/internal/engine"
)

func roundTrip(t *testing.T, s *suite) {
	source := t.TempDir()
	asked := s.sample("sleep 600")
	asked.Binds = []engine.Bind{
		{Source: source, Target: "/mnt/b", ReadOnly: true, Propagation: "private"},
		{Source: source, Target: "/mnt/a", Propagation: "private"},
	}
	asked.ExtraHosts = []string{"nowhere:127.0.0.2"}
	id := s.create(t, asked)
	for _, ref := range []string{id, asked.Name} {
		got, state, err := s.e.Inspect(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		want := engine.Inherited(asked, s.plain)
		wantSame(t, want, got)
		wantSame(t, engine.State{ID: id, Name: asked.Name, Status: "created", Labels: want.Labels, Image: s.plain.ID}, state)
	}
}

func imageAdds(t *testing.T, s *suite) {
	img := Load(t, s.e, ImageSpec{
		Env: []string{"A=image", "B=image", "OUT=image"}, User: "7:7", WorkingDir: "/bin", Entrypoint: []string{"/entry"},
		Cmd: []string{"cmd"}, Labels: map[string]string{"image": "yes", TestLabel: "image"}, Health: []string{"CMD", "true"}, StopSignal: "SIGUSR1",
	})
	asked := s.sample("sleep 600")
	asked.Image, asked.Env = img.ID, []string{"A=ours", "OUT"}
	got, _, err := s.e.Inspect(t.Context(), s.create(t, asked))
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Normal(asked)
	want.Env = []string{"A=ours", "OUT", "B=image", "TEST_IMAGE=" + img.RepoTags[0]}
	want.Labels = map[string]string{"image": "yes", TestLabel: s.tag}
	wantSame(t, want, got)
	wantSame(t, engine.Inherited(asked, img), got)
}

func lifecycle(t *testing.T, s *suite) {
	id := s.start(t, "sleep 600")
	running := s.state(t, id)
	if running.Status != "running" || running.Pid <= 1 || running.StartedAt.IsZero() || !running.FinishedAt.IsZero() {
		t.Fatalf("state %+v, want running with a pid since now", running)
	}
	if err := s.e.Start(t.Context(), id); err != nil {
		t.Fatalf("starting a running container: %v", err)
	}
	wantSame(t, running, s.state(t, id))
	if err := s.e.Kill(t.Context(), id, "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	killed := s.ended(t, id)
	if killed.ExitCode != 137 || killed.Pid != 0 || killed.FinishedAt.Before(killed.StartedAt) || killed.OOMKilled {
		t.Fatalf("state %+v, want exited with 137", killed)
	}
}

func exitCodes(t *testing.T, s *suite) {
	for script, code := range map[string]int{"exit 0": 0, "exit 3": 3, "exit 255": 255} {
		if state := s.ended(t, s.start(t, script)); state.ExitCode != code {
			t.Errorf("%s: exit code %d", script, state.ExitCode)
		}
	}
}

func badCommand(t *testing.T, s *suite) {
	c := s.sample("exit 0")
	c.Entrypoint = []string{"/no/such/program"}
	id := s.create(t, c)
	wantKind(t, s.e.Start(t.Context(), id), engine.Invalid)
	if state := s.state(t, id); state.Status != "created" || state.ExitCode != 127 || state.Error == "" || state.Pid != 0 {
		t.Fatalf("state %+v, want created, 127 and the reason", state)
	}
}

func killKinds(t *testing.T, s *suite) {
	created := s.create(t, s.sample("sleep 600"))
	running := s.start(t, "sleep 600")
	wantKind(t, s.e.Kill(t.Context(), created, "SIGKILL"), engine.Conflict)
	wantKind(t, s.e.Kill(t.Context(), "no-such-container", "SIGKILL"), engine.NotFound)
	wantKind(t, s.e.Kill(t.Context(), running, "SIGNONE"), engine.Invalid)
	wantKind(t, s.e.Kill(t.Context(), "../info", "SIGKILL"), engine.Invalid)
	if err := s.e.Kill(t.Context(), running, "SIGWINCH"); err != nil {
		t.Fatal(err)
	}
	if state := s.state(t, running); state.Status != "running" {
		t.Fatalf("after SIGWINCH: %+v", state)
	}
}

func removing(t *testing.T, s *suite) {
	for name, id := range map[string]string{
		"never started": s.create(t, s.sample("sleep 600")),
		"running":       s.start(t, "sleep 600"),
		"exited":        s.start(t, "exit 0"),
		"unknown":       "no-such-container",
	} {
		for range 2 {
			if err := s.e.Remove(t.Context(), id); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, _, err := s.e.Inspect(t.Context(), id)
		wantKind(t, err, engine.NotFound)
		wantKind(t, s.e.Start(t.Context(), id), engine.NotFound)
	}
}

func removingTogether(t *testing.T, s *suite) {
	id := s.start(t, "sleep 600")
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if err := s.e.Remove(t.Context(), id); err != nil {
				t.Error(err)
			}
			// Whoever returns, the container is gone by then.
			if _, _, err := s.e.Inspect(t.Context(), id); engine.KindOf(err) != engine.NotFound {
				t.Errorf("after the removal: %v", err)
			}
		})
	}
	all.Wait()
}

func nameTaken(t *testing.T, s *suite) {
	c := s.sample("sleep 600")
	id := s.create(t, c)
	_, err := s.e.Create(t.Context(), c)
	wantKind(t, err, engine.Conflict)
	if err := s.e.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.create(t, c)
}

func unknownImage(t *testing.T, s *suite) {
	c := s.sample("exit 0")
	c.Image = "sha256:" + randomHex(32)
	_, err := s.e.Create(t.Context(), c)
	wantKind(t, err, engine.NotFound)
}

func unknownRuntime(t *testing.T, s *suite) {
	c := s.sample("exit 0")
	c.Runtime = "no-such-runtime"
	_, err := s.e.Create(t.Context(), c)
	wantKind(t, err, engine.Invalid)
}

func missingSource(t *testing.T, s *suite) {
	c := s.sample("exit 0")
	missing := filepath.Join(t.TempDir(), "missing")
	c.Binds = []engine.Bind{{Source: missing, Target: "/mnt", ReadOnly: true, Propagation: "private"}}
	_, err := s.e.Create(t.Context(), c)
	wantKind(t, err, engine.Invalid)
	wantAbsent(t, missing)
	_, _, err = s.e.Inspect(t.Context(), c.Name)
	wantKind(t, err, engine.NotFound)
}

func vanishedSource(t *testing.T, s *suite) {
	c := s.sample("exit 0")
	source := filepath.Join(t.TempDir(), "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	c.Binds = []engine.Bind{{Source: source, Target: "/mnt", ReadOnly: true, Propagation: "private"}}
	id := s.create(t, c)
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	if err := s.e.Start(t.Context(), id); err == nil {
		t.Fatal("the container started")
	}
	wantAbsent(t, source)
}

func wantAbsent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s exists, or: %v", path, err)
	}
}

// refusedSettings: the table of all refusals is Validate's own test; here each way into Create is tried once.
func refusedSettings(t *testing.T, s *suite) {
	for field, relax := range map[string]func(*engine.Container){
		"Privileged":  func(c *engine.Container) { c.Privileged = true },
		"Memory":      func(c *engine.Container) { c.Memory, c.MemorySwap = 0, 0 },
		"PidsLimit":   func(c *engine.Container) { c.PidsLimit = -1 },
		"MaskedPaths": func(c *engine.Container) { c.MaskedPaths = nil },
	} {
		c := s.sample("exit 0")
		relax(&c)
		_, err := s.e.Create(t.Context(), c)
		wantKind(t, err, engine.Invalid)
		var fault *engine.FieldError
		if !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%s: error %v, want one that names the field", field, err)
		}
		_, _, err = s.e.Inspect(t.Context(), c.Name)
		wantKind(t, err, engine.NotFound)
	}
}

func listing(t *testing.T, s *suite) {
	group := randomHex(6)
	made := func(start bool, script, colour string) string {
		c := s.sample(script)
		c.Labels["group"], c.Labels["colour"] = group, colour
		id := s.create(t, c)
		if start {
			if err := s.e.Start(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		return id
	}
	created, running, exited := made(false, "exit 0", "red"), made(true, "sleep 600", "red"), made(true, "exit 0", "")
	s.ended(t, exited)
	for _, c := range []struct {
		labels map[string]string
		want   map[string]string
	}{
		{map[string]string{"group": group}, map[string]string{created: "created", running: "running", exited: "exited"}},
		{map[string]string{"group": group, "colour": "red"}, map[string]string{created: "created", running: "running"}},
		{map[string]string{"group": group, "colour": ""}, map[string]string{exited: "exited"}},
		{map[string]string{"group": group, "colour": "blue"}, map[string]string{}},
	} {
		list, err := s.e.List(t.Context(), c.labels)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, state := range list {
			got[state.ID] = state.Status
			if state.Name == "" || state.Image != s.plain.ID || state.Labels["group"] != group {
				t.Errorf("%+v lacks name, image or labels", state)
			}
		}
		wantSame(t, c.want, got)
	}
	_, err := s.e.List(t.Context(), nil)
	wantKind(t, err, engine.Invalid)
}

func volumes(t *testing.T, s *suite) {
	img := Load(t, s.e, ImageSpec{Volumes: []string{"/data", "/more/"}})
	c := s.sample("exit 0")
	c.Image = img.ID
	c.Tmpfs["/data"] = c.Tmpfs["/tmp"]
	_, err := s.e.Create(t.Context(), c)
	wantKind(t, err, engine.Invalid)
	var fault *engine.FieldError
	if !errors.As(err, &fault) || fault.Field != "Tmpfs" {
		t.Fatalf("error %v, want one that names Tmpfs", err)
	}
	c.Tmpfs["/more"] = c.Tmpfs["/tmp"]
	id := s.create(t, c)
	if err := s.e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	got, _, err := s.e.Inspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got.Volumes != 0 || !slices.Equal(got.Others, nil) {
		t.Fatalf("%d volumes, others %q, want none", got.Volumes, got.Others)
	}
	wantSame(t, engine.Inherited(c, img), got)
}
