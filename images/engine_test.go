package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// fakeEngine serves the handler on a unix socket and returns its client.
func fakeEngine(t *testing.T, handler http.HandlerFunc) *engine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "engine.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(server.Close)
	eng, err := newEngine("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(eng.http.CloseIdleConnections)
	return eng
}

func TestALoadFailsOnTheEnginesMessageDespiteItsStatus(t *testing.T) {
	eng := fakeEngine(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, `{"stream":"Loading"}`)
		fmt.Fprintln(w, `{"errorDetail":{"message":"disk full"},"error":"disk full"}`)
	})
	err := eng.load(t.Context(), func(w io.Writer) error { _, err := io.WriteString(w, "archive"); return err })
	if err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v, want the engine's", err)
	}
}

func TestALoadEndsWhenTheEngineStopsReading(t *testing.T) {
	eng := fakeEngine(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no room", http.StatusInternalServerError) })
	err := eng.load(t.Context(), func(w io.Writer) error {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
	})
	if err == nil {
		t.Error("no error")
	}
}

func TestALoadReportsAnArchiveThatCannotBeWritten(t *testing.T) {
	eng := fakeEngine(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	broken := errors.New("spool is gone")
	if err := eng.load(t.Context(), func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want the writer's", err)
	}
}

func TestAnImageOfTheSameRecipeIsNotBuiltAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		label  func(recipe) string
		cached bool
	}{
		{"same recipe", recipe.hash, true},
		{"by Dockerfile", func(recipe) string { return byDockerfile }, true},
		{"other recipe", func(recipe) string { return "old" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, built := testRecipe(t, "tiny"), false
			r.fill = func(context.Context, recipe, *layer, string) error { built = true; return errors.New("enough seen") }
			eng := fakeEngine(t, func(w http.ResponseWriter, req *http.Request) {
				switch req.URL.Path {
				case "/version":
					fmt.Fprintln(w, `{"Arch":"amd64"}`)
				case "/images/sandboxd/tiny:latest/json":
					fmt.Fprintf(w, `{"Id":"sha256:1","Config":{"Labels":{%q:%q}}}`, recipeLabel, c.label(r))
				}
			})
			var said strings.Builder
			if err := provide(t.Context(), eng, r, false, &said); (err == nil) != c.cached || built == c.cached {
				t.Errorf("built %v, error %v, said %q", built, err, said.String())
			}
			if strings.Contains(said.String(), "cached") != c.cached {
				t.Errorf("said %q", said.String())
			}
		})
	}
}

func TestAnEngineOfAnotherArchitectureIsRefused(t *testing.T) {
	eng := fakeEngine(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, `{"Arch":"arm64"}`) })
	if err := eng.checkArch(t.Context(), "amd64"); err == nil {
		t.Error("taken")
	}
}

func TestDockerHostForms(t *testing.T) {
	t.Setenv("DOCKER_TLS_VERIFY", "")
	for dockerHost, ok := range map[string]bool{
		"": true, "unix:///run/x.sock": true, "tcp://127.0.0.1:2375": true,
		"ssh://host": false, "unix://": false, "127.0.0.1:2375": false,
	} {
		if _, err := newEngine(dockerHost); (err == nil) != ok {
			t.Errorf("%q: error %v, want ok %v", dockerHost, err, ok)
		}
	}
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	if _, err := newEngine("tcp://127.0.0.1:2376"); err == nil {
		t.Error("tcp with TLS taken, though it would be spoken to in the clear")
	}
}
