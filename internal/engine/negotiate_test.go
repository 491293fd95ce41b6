package engine_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/engine"
)

const infoAnswer = `{"ServerVersion":"stub","CgroupDriver":"cgroupfs","CgroupVersion":"1","Runtimes":{"runc":{},"runsc":{}},"DefaultRuntime":"runc","Driver":"overlay2","OSType":"linux"}`

func TestTheNewestCommonVersionIsSpoken(t *testing.T) {
	for name, c := range map[string]struct{ minVersion, maxVersion, want string }{
		"Docker 20.10":               {"1.12", "1.41", "1.41"},
		"Docker 25":                  {"1.24", "1.44", "1.44"},
		"Docker 28":                  {"1.24", "1.51", "1.51"},
		"Docker 29":                  {"1.44", "1.52", "1.51"},
		"a newer one":                {"1.51", "1.99", "1.51"},
		"one that hides its minimum": {"", "1.43", "1.43"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, c.minVersion, c.maxVersion).on("GET /info", says(200, infoAnswer))
			info, err := s.client(t).Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if info.APIVersion != c.want || info.CgroupVersion != 1 || !slices.Equal(info.Runtimes, []string{"runc", "runsc"}) {
				t.Fatalf("info %+v, want API %s", info, c.want)
			}
			if got := s.calls(); !slices.Equal(got, []string{"GET /version", "GET /v" + c.want + "/info"}) {
				t.Fatalf("calls %q", got)
			}
		})
	}
}

func TestAnEngineWeCannotTalkToIsSaidInOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		minVersion, maxVersion string
		want                   []string
	}{
		"too old":           {"1.12", "1.24", []string{"speaks API 1.24", "needs 1.41", "update the engine"}},
		"almost new enough": {"1.12", "1.40", []string{"speaks API 1.40", "needs 1.41"}},
		"too new":           {"1.60", "1.70", []string{"wants API 1.60", "up to 1.51", "update sandboxd"}},
		"no version":        {"", "", []string{"names no API version"}},
		"no sane version":   {"", "1.41/../../exec", []string{"names no API version"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, c.minVersion, c.maxVersion)
			err := s.client(t).Ping(t.Context())
			wantKind(t, err, engine.Unavailable)
			for _, part := range append(c.want, s.Host) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
			if got := s.calls(); !slices.Equal(got, []string{"GET /version"}) {
				t.Errorf("calls %q, want the question alone", got)
			}
		})
	}
}

// The environment's pin would make a daemon fail on the day its engine is updated.
func TestTheVersionIsNeverPinned(t *testing.T) {
	t.Setenv("DOCKER_API_VERSION", "1.30")
	s := newStub(t, "1.24", "1.44").on("HEAD /_ping", says(200, ""))
	if err := s.client(t).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAnEngineThatIsUpdatedUnderUsIsAskedAgain(t *testing.T) {
	s := newStub(t, "1.12", "1.41").on("GET /info", says(200, infoAnswer))
	d := s.client(t)
	if _, err := d.Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.speak("1.44", "1.52")
	s.on("GET /info", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1.41/") {
			refuses(400, "client version 1.41 is too old. Minimum supported API version is 1.44")(w, r)
			return
		}
		says(200, infoAnswer)(w, r)
	})
	_, err := d.Info(t.Context())
	wantKind(t, err, engine.Invalid)
	info, err := d.Info(t.Context())
	if err != nil || info.APIVersion != "1.51" {
		t.Fatalf("info %+v, %v; want the new engine's version", info, err)
	}
}

func TestOpenDoesNotConnectAndTheEngineMayComeLater(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "later.sock")
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	d := open(t, engine.Options{CallTimeout: soon})
	if d.Host() != "unix://"+socket {
		t.Fatalf("host %s, want the environment's", d.Host())
	}
	err := d.Ping(t.Context())
	wantKind(t, err, engine.Unavailable)
	if !strings.Contains(err.Error(), socket) || engine.IsUnsure(err) {
		t.Fatalf("error %v (unsure %v), want the socket named, and sure", err, engine.IsUnsure(err))
	}
	s := newStub(t, "1.24", "1.41").on("HEAD /_ping", says(200, ""))
	link(t, strings.TrimPrefix(s.Host, "unix://"), socket)
	if err := d.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestHosts(t *testing.T) {
	for host, want := range map[string]string{
		"unix:///run/docker.sock":                "",
		"tcp://127.0.0.1:2375":                   "",
		"tcp://127.0.0.1:2375/sub":               "without a path",
		"ssh://me@host":                          "the engine must be this host's own",
		"/var/run/docker.sock":                   "want unix:///path",
		"unix:///" + strings.Repeat("long/", 30): "too long",
	} {
		d := engine.New(engine.Options{Host: host})
		err := d.Open()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", host, err, want)
		}
		_ = d.Close()
	}
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	if err := engine.New(engine.Options{Host: "tcp://127.0.0.1:2376"}).Open(); err == nil {
		t.Error("TLS was asked for and silently not used")
	}
	if err := engine.New(engine.Options{CallTimeout: -1}).Open(); err == nil {
		t.Error("a timeout below 0 was taken")
	}
}

func TestAnEngineOnAPort(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	server := httptest.NewServer(http.HandlerFunc(newStub(t, "1.24", "1.44").on("HEAD /_ping", says(200, "")).serve))
	defer server.Close()
	if err := open(t, engine.Options{Host: "tcp://" + server.Listener.Addr().String()}).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestCallsBeforeOpenAndAfterClose(t *testing.T) {
	s := newStub(t, "1.24", "1.41").on("GET /events", hangsAfter(""))
	d := engine.New(engine.Options{Host: s.Host})
	wantKind(t, d.Ping(t.Context()), engine.Unavailable)
	if err := d.Open(); err != nil {
		t.Fatal(err)
	}
	stream, err := d.Events(t.Context(), map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	s.on("GET /info", hangs)
	failed := make(chan error)
	go func() {
		_, err := d.Info(context.Background())
		failed <- err
	}()
	waitFor(t, func() bool { return slices.Contains(s.calls(), "GET /v1.41/info") })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	wantKind(t, <-failed, engine.TimedOut)
	if _, isOpen := <-stream; isOpen {
		t.Fatal("the stream outlived Close")
	}
	wantKind(t, d.Ping(t.Context()), engine.Unavailable)
	_, err = d.Events(t.Context(), map[string]string{"a": "b"})
	wantKind(t, err, engine.Unavailable)
	_, err = d.ImageSave(t.Context(), "x")
	wantKind(t, err, engine.Unavailable)
}
