package engine_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandboxd/internal/engine"
	"sandboxd/internal/engine/enginetest"
)

var sample = func() engine.Container {
	return enginetest.Sample(engine.Image{ID: imageID}, engine.Info{}, "tag", "exit 0")
}

const (
	imageID     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	imageAnswer = `{"Id":"` + imageID + `","Os":"linux","Architecture":"amd64","RootFS":{"Layers":["x"]}}`
)

// everyCall is each method with the request that it makes of the engine.
func everyCall(d *engine.Docker) map[string]struct {
	request string
	changes bool
	call    func(context.Context) error
} {
	type row = struct {
		request string
		changes bool
		call    func(context.Context) error
	}
	return map[string]row{
		"info":    {"GET /info", false, func(ctx context.Context) error { _, err := d.Info(ctx); return err }},
		"ping":    {"HEAD /_ping", false, d.Ping},
		"create":  {"POST /containers/create", true, func(ctx context.Context) error { _, err := d.Create(ctx, sample()); return err }},
		"inspect": {"GET /containers/c1/json", false, func(ctx context.Context) error { _, _, err := d.Inspect(ctx, "c1"); return err }},
		"start":   {"POST /containers/c1/start", true, func(ctx context.Context) error { return d.Start(ctx, "c1") }},
		"kill":    {"POST /containers/c1/kill", true, func(ctx context.Context) error { return d.Kill(ctx, "c1", "SIGKILL") }},
		"remove":  {"DELETE /containers/c1", true, func(ctx context.Context) error { return d.Remove(ctx, "c1") }},
		"list": {"GET /containers/json", false, func(ctx context.Context) error {
			_, err := d.List(ctx, map[string]string{"a": "b"})
			return err
		}},
		"events": {"GET /events", false, func(ctx context.Context) error {
			_, err := d.Events(ctx, map[string]string{"a": "b"})
			return err
		}},
		"image inspect": {"GET /images/" + imageID + "/json", false, func(ctx context.Context) error { _, err := d.ImageInspect(ctx, imageID); return err }},
		"image pull":    {"POST /images/create", true, func(ctx context.Context) error { return d.ImagePull(ctx, "r/i:1", nil) }},
		"image load":    {"POST /images/load", true, func(ctx context.Context) error { return d.ImageLoad(ctx, strings.NewReader("x")) }},
		"image save":    {"GET /images/get", false, func(ctx context.Context) error { return save(ctx, d) }},
		"image remove":  {"DELETE /images/i:1", true, func(ctx context.Context) error { return d.ImageRemove(ctx, "i:1") }},
	}
}

func save(ctx context.Context, d *engine.Docker) error {
	r, err := d.ImageSave(ctx, imageID)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

func TestAHungEngineHoldsNoCallBeyondItsDeadline(t *testing.T) {
	for name := range everyCall(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, "1.24", "1.51").on("GET /images/"+imageID+"/json", says(200, imageAnswer))
			c := everyCall(s.hasty(t))[name]
			s.on(c.request, hangs)
			if name == "ping" {
				s.on("GET /_ping", hangs)
			}
			err := within(t, soon+5*time.Second, c.call)
			wantKind(t, err, engine.TimedOut)
			if engine.IsUnsure(err) != c.changes {
				t.Errorf("unsure is %v, want %v: %v", engine.IsUnsure(err), c.changes, err)
			}
		})
	}
}

func TestAHungCallLeavesNoGoroutine(t *testing.T) {
	s := newStub(t, "1.24", "1.51")
	d := s.hasty(t)
	before := goleak.IgnoreCurrent()
	for _, name := range []string{"create", "inspect", "kill", "events", "image pull", "image load"} {
		c := everyCall(d)[name]
		s.on(c.request, hangs).on("GET /images/"+imageID+"/json", hangs)
		wantKind(t, c.call(t.Context()), engine.TimedOut)
	}
	goleak.VerifyNone(t, before)
}

func TestAHungNegotiationHoldsNoCallBeyondItsDeadline(t *testing.T) {
	s := newStub(t, "1.24", "1.51")
	s.mu.Lock()
	s.version = hangs
	s.mu.Unlock()
	d := s.hasty(t)
	err := within(t, soon+5*time.Second, func(ctx context.Context) error { return d.Start(ctx, "c1") })
	wantKind(t, err, engine.TimedOut)
	if engine.IsUnsure(err) {
		t.Error("nothing but a question was sent")
	}
}

func TestAnAnswerThatStopsInItsMiddle(t *testing.T) {
	for name := range everyCall(nil) {
		if name == "ping" || name == "events" || name == "start" || name == "kill" || name == "remove" {
			continue // no body, or one without an end
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, "1.24", "1.51").on("GET /images/"+imageID+"/json", says(200, imageAnswer))
			c := everyCall(s.hasty(t))[name]
			s.on(c.request, hangsAfter(`{`))
			wantKind(t, within(t, soon+5*time.Second, c.call), engine.TimedOut)
		})
	}
}

func TestAConnectionThatBreaksInAnAnswer(t *testing.T) {
	for name := range everyCall(nil) {
		if name == "ping" || name == "events" || name == "start" || name == "kill" || name == "remove" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, "1.24", "1.51").on("GET /images/"+imageID+"/json", says(200, imageAnswer))
			c := everyCall(s.client(t))[name]
			s.on(c.request, breaks)
			err := within(t, soon+5*time.Second, c.call)
			wantKind(t, err, engine.Unavailable)
			if engine.IsUnsure(err) != c.changes {
				t.Errorf("unsure is %v, want %v", engine.IsUnsure(err), c.changes)
			}
		})
	}
}

func TestAnEngineThatDiesBeforeItAnswersLeavesUsUnsure(t *testing.T) {
	s := newStub(t, "1.24", "1.51").on("POST /containers/c1/start", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	err := s.client(t).Start(t.Context(), "c1")
	wantKind(t, err, engine.Unavailable)
	if !engine.IsUnsure(err) {
		t.Errorf("want unsure: %v", err)
	}
}

func TestAnswersThatCannotBeRead(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no JSON":     says(200, "<html>\n\x1b[31mhello"),
		"wrong types": says(200, `[{"Id":7,"CgroupVersion":{}}]`),
		"half":        says(200, `{"Id":`),
		"empty":       says(200, ""),
	} {
		for _, call := range []string{"info", "inspect", "create", "list", "image inspect", "image pull", "image load"} {
			if name == "empty" && (call == "image pull" || call == "image load") {
				continue // a stream without a message is no fault
			}
			t.Run(name+" "+call, func(t *testing.T) {
				s := newStub(t, "1.24", "1.51").on("GET /images/"+imageID+"/json", says(200, imageAnswer))
				c := everyCall(s.client(t))[call]
				s.on(c.request, answer)
				err := c.call(t.Context())
				wantKind(t, err, engine.Internal)
				if engine.IsUnsure(err) != c.changes {
					t.Errorf("unsure is %v, want %v", engine.IsUnsure(err), c.changes)
				}
			})
		}
	}
}

func TestIncompleteAnswersAreNoEmptyContainers(t *testing.T) {
	s := newStub(t, "1.24", "1.51").on("GET /images/"+imageID+"/json", says(200, imageAnswer)).
		on("GET /containers/c1/json", says(200, `{"Id":"x"}`)).on("POST /containers/create", says(201, `{}`)).
		on("GET /images/i/json", says(200, `{}`)).on("GET /info", says(200, `{}`))
	d := s.client(t)
	_, _, err := d.Inspect(t.Context(), "c1")
	wantKind(t, err, engine.Internal)
	_, err = d.Create(t.Context(), sample())
	wantKind(t, err, engine.Internal)
	_, err = d.ImageInspect(t.Context(), "i")
	wantKind(t, err, engine.Internal)
	_, err = d.Info(t.Context())
	wantKind(t, err, engine.Internal)
}

func TestHugeAnswersAreCutOff(t *testing.T) {
	for name, piece := range map[string]string{"inspect": " ", "image pull": " ", "image load": " ", "events": " "} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, "1.24", "1.51")
			d := open(t, engine.Options{Host: s.Host})
			c := everyCall(d)[name]
			s.on(c.request, endless(piece))
			if name == "events" {
				stream, err := d.Events(t.Context(), map[string]string{"a": "b"})
				if err != nil {
					t.Fatal(err)
				}
				if e, isOpen := <-stream; isOpen {
					t.Fatalf("event %+v out of an endless line", e)
				}
				return
			}
			err := within(t, time.Minute, c.call)
			wantKind(t, err, engine.Internal)
			if !strings.Contains(err.Error(), "too large") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestKindsByStatus(t *testing.T) {
	for _, c := range []struct {
		status  int
		message string
		want    engine.Kind
	}{
		{400, "bad", engine.Invalid},
		{404, "no such container", engine.NotFound},
		{409, "conflict", engine.Conflict},
		{429, "too many requests", engine.Internal},
		{500, "boom", engine.Internal},
		{500, "mkdir /var/lib/docker/x: no space left on device", engine.NoSpace},
		{500, "write: Disk quota exceeded", engine.NoSpace},
		{503, "starting", engine.Unavailable},
		{500, "a\nlong\x1b[31m " + strings.Repeat("story ", 100_000), engine.Internal},
	} {
		t.Run(fmt.Sprintf("%d %.20q", c.status, c.message), func(t *testing.T) {
			s := newStub(t, "1.24", "1.51").on("POST /containers/c1/start", refuses(c.status, c.message))
			err := s.client(t).Start(t.Context(), "c1")
			wantKind(t, err, c.want)
			if engine.IsUnsure(err) {
				t.Error("the engine has answered: nothing is unsure")
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, host := range map[string]string{
		"a socket of a dead engine": "unix://" + stale, "no socket": "unix://" + filepath.Join(dir, "none"),
		"a plain file": "unix://" + filepath.Join(dir, "file"), "a port": "tcp://127.0.0.1:1",
	} {
		t.Run(name, func(t *testing.T) {
			for op, c := range everyCall(open(t, engine.Options{Host: host})) {
				err := c.call(t.Context())
				wantKind(t, err, engine.Unavailable)
				if engine.IsUnsure(err) || !strings.Contains(err.Error(), strings.TrimPrefix(strings.TrimPrefix(host, "unix://"), "tcp://")) {
					t.Errorf("%s: %v, unsure %v", op, err, engine.IsUnsure(err))
				}
			}
		})
	}
}

func TestPulls(t *testing.T) {
	line := `{"status":"Downloading","id":"abc","progressDetail":{"current":3,"total":10}}` + "\r\n"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   engine.Kind
		unsure bool
	}{
		"the registry says 429 at once":  {refuses(500, "toomanyrequests: You have reached your pull rate limit"), engine.Internal, false},
		"the engine says 429":            {refuses(429, "slow down"), engine.Internal, false},
		"the registry says 500 later":    {says(200, line+`{"errorDetail":{"message":"received unexpected HTTP status: 500"},"error":"received unexpected HTTP status: 500"}`), engine.Internal, false},
		"the disk is full in the middle": {says(200, line+`{"error":"write /var/lib/x: no space left on device"}`), engine.NoSpace, false},
		"the registry hangs":             {hangs, engine.TimedOut, true},
		"the registry hangs later":       {hangsAfter(line), engine.TimedOut, true},
		"no such image":                  {refuses(404, "pull access denied"), engine.NotFound, false},
		"the engine dies":                {breaks, engine.Unavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, "1.24", "1.51").on("POST /images/create", c.answer)
			d := s.client(t)
			if c.want == engine.TimedOut {
				d = s.hasty(t)
			}
			err := within(t, soon+5*time.Second, func(ctx context.Context) error { return d.ImagePull(ctx, "r/i:1", nil) })
			wantKind(t, err, c.want)
			if engine.IsUnsure(err) != c.unsure {
				t.Errorf("unsure is %v, want %v", engine.IsUnsure(err), c.unsure)
			}
		})
	}
	var lines []string
	s := newStub(t, "1.24", "1.51").on("POST /images/create", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("fromImage") != "docker.io/library/i" || r.FormValue("tag") != "latest" {
			t.Errorf("asked for %v, want one tag", r.Form)
		}
		says(200, line+"\n"+`{"status":"Done \u001b[1mnow"}`)(w, r)
	})
	if err := s.client(t).ImagePull(t.Context(), "i", func(l string) { lines = append(lines, l) }); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2 || lines[0] != "abc Downloading 3/10 bytes" || lines[1] != "Done ?[1mnow" {
		t.Errorf("progress %q", lines)
	}
	wantKind(t, s.client(t).ImagePull(t.Context(), "r/UPPER", nil), engine.Invalid)
}

func TestARemovalUnderWayIsWaitedOut(t *testing.T) {
	var calls atomic.Int32
	s := newStub(t, "1.24", "1.51").on("DELETE /containers/c1", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("force") != "1" || r.FormValue("v") != "1" {
			t.Errorf("removal %v, want by force, with volumes", r.Form)
		}
		if calls.Add(1) < 4 {
			refuses(409, "removal of container c1 is already in progress")(w, r)
			return
		}
		refuses(404, "No such container: c1")(w, r)
	}).on("DELETE /containers/c2", refuses(409, "removal of container c2 is already in progress"))
	d := s.client(t)
	if err := d.Remove(t.Context(), "c1"); err != nil || calls.Load() != 4 {
		t.Fatalf("error %v after %d calls", err, calls.Load())
	}
	d = s.hasty(t)
	wantKind(t, within(t, soon+5*time.Second, func(ctx context.Context) error { return d.Remove(ctx, "c2") }), engine.TimedOut)
}

func TestEventsEndWhenTheEngineGoesAway(t *testing.T) {
	event := `{"Type":"container","Action":"die","Actor":{"ID":"x","Attributes":{"name":"n","exitCode":"3","a":"b"}},"timeNano":1}` + "\n"
	s := newStub(t, "1.24", "1.51").on("GET /events", says(200, event+event))
	d := s.client(t)
	stream, err := d.Events(t.Context(), map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	var got []engine.Event
	for e := range stream {
		got = append(got, e)
	}
	if len(got) != 2 || got[0].ID != "x" || got[0].ExitCode != 3 || got[0].Labels["a"] != "b" || len(got[0].Labels) != 1 {
		t.Fatalf("events %+v", got)
	}
	s.on("GET /events", refuses(500, "boom"))
	_, err = d.Events(t.Context(), map[string]string{"a": "b"})
	wantKind(t, err, engine.Internal)
}

func link(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, isTrue func() bool) {
	t.Helper()
	for range 500 {
		if isTrue() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("waited for 5 s in vain")
}
