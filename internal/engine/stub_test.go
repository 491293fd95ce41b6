package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandboxd/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is an engine that says what the test wants, on a unix socket.
type stub struct {
	Host string

	mu      sync.Mutex
	version http.HandlerFunc
	answers map[string]http.HandlerFunc // "METHOD /path" without the version
	seen    []string                    // as they came
}

var versionPrefix = regexp.MustCompile(`^/v1\.[0-9]+`)

// newStub answers GET /version as an engine that speaks min to max.
func newStub(t *testing.T, minVersion, maxVersion string) *stub {
	t.Helper()
	s := &stub{answers: map[string]http.HandlerFunc{}}
	s.speak(minVersion, maxVersion)
	socket := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.Host = "unix://" + socket
	return s
}

func (s *stub) speak(minVersion, maxVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = says(http.StatusOK, fmt.Sprintf(`{"Version":"stub","ApiVersion":%q,"MinAPIVersion":%q}`, maxVersion, minVersion))
}

func (s *stub) on(call string, h http.HandlerFunc) *stub {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[call] = h
	return s
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // to its end, or the server does not notice a client that goes away
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	s.seen = append(s.seen, r.Method+" "+r.URL.Path)
	call := r.Method + " " + versionPrefix.ReplaceAllString(r.URL.Path, "")
	h := s.answers[call]
	if call == "GET /version" {
		h = s.version
	}
	s.mu.Unlock()
	if h == nil {
		h = says(http.StatusNotImplemented, `{"message":"the stub knows no `+call+`"}`)
	}
	h(w, r)
}

func (s *stub) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func refuses(status int, message string) http.HandlerFunc {
	b, _ := json.Marshal(map[string]string{"message": message})
	return says(status, string(b))
}

// hangs answers nothing until the client goes away.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// hangsAfter sends a part of an answer and no more.
func hangsAfter(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, part)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// breaks cuts the connection in the middle of an answer.
func breaks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	fmt.Fprint(w, `{"Id":`)
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// endless sends pieces until the client goes away.
func endless(piece string) http.HandlerFunc {
	piece = strings.Repeat(piece, 1<<16/len(piece))
	return func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, piece); err != nil {
				return
			}
		}
	}
}

const soon = 300 * time.Millisecond

// client is a Docker on the stub with the usual deadlines.
func (s *stub) client(t *testing.T) *engine.Docker {
	t.Helper()
	return open(t, engine.Options{Host: s.Host})
}

// hasty is one with short deadlines, for engines that hang.
func (s *stub) hasty(t *testing.T) *engine.Docker {
	t.Helper()
	return open(t, engine.Options{Host: s.Host, CallTimeout: soon, CreateTimeout: soon, StartTimeout: soon, RemoveTimeout: soon, ImageTimeout: soon})
}

func open(t *testing.T, opt engine.Options) *engine.Docker {
	t.Helper()
	d := engine.New(opt)
	if err := d.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func wantKind(t *testing.T, err error, want engine.Kind) {
	t.Helper()
	if err == nil || engine.KindOf(err) != want {
		t.Fatalf("error %v, want kind %s", err, want)
	}
	if strings.ContainsAny(err.Error(), "\n\r\x1b") || len(err.Error()) > 4096 {
		t.Fatalf("error %.200q is not one line", err.Error())
	}
}

// within runs call and fails when it takes longer than a hung engine may hold us.
func within(t *testing.T, limit time.Duration, call func(ctx context.Context) error) error {
	t.Helper()
	began := time.Now()
	err := call(t.Context())
	if took := time.Since(began); took > limit {
		t.Errorf("took %v, want at most %v", took, limit)
	}
	return err
}
