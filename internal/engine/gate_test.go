package engine_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"sandboxd/internal/engine"
)

// The SDK's methods this room uses. Whoever adds one must add its endpoint to the gate, and say why in the commit.
var usedOfSDK = []string{
	"Info", "Ping", "Close", "ContainerCreate", "ContainerInspect", "ContainerStart", "ContainerKill", "ContainerRemove",
	"ContainerList", "Events", "ImageInspect", "ImagePull", "ImageSave", "ImageLoad", "ImageRemove",
	"ServerVersion", // a field of the answer to Info; the method is not used
}

// No source of this room, tests included, names any other method of the SDK's client: neither archive (cp), exec,
// attach, logs and commit, nor any that a later SDK adds.
func TestNoSourceNamesAnotherMethodOfTheSDK(t *testing.T) {
	forbidden := map[string]bool{}
	for m := range reflect.TypeFor[*client.Client]().Methods() {
		forbidden[m.Name] = !slices.Contains(usedOfSDK, m.Name)
	}
	for _, must := range []string{"CopyToContainer", "CopyFromContainer", "ContainerStatPath", "ContainerExecCreate", "ContainerAttach", "ContainerLogs", "ContainerCommit", "ContainerExport"} {
		if !forbidden[must] {
			t.Fatalf("%s is not known as forbidden; has the SDK renamed it?", must)
		}
	}
	files := token.NewFileSet()
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || path == "gate_test.go" {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, isSelector := n.(*ast.SelectorExpr); isSelector && forbidden[s.Sel.Name] {
				t.Errorf("%s: %s is a method of the Docker SDK that this room must not call", files.Position(s.Pos()), s.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Even code that did name them could not call: the gate lets none through.
func TestTheGateStopsEveryOtherEndpoint(t *testing.T) {
	s := newStub(t, "1.24", "1.51")
	d := s.client(t)
	sdk, err := engine.SDK(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	before := len(s.calls())
	for name, call := range map[string]func(context.Context) error{
		"cp to": func(ctx context.Context) error {
			return sdk.CopyToContainer(ctx, "c1", "/", nil, container.CopyToContainerOptions{})
		},
		"cp from": func(ctx context.Context) error { _, _, err := sdk.CopyFromContainer(ctx, "c1", "/"); return err },
		"stat":    func(ctx context.Context) error { _, err := sdk.ContainerStatPath(ctx, "c1", "/"); return err },
		"exec": func(ctx context.Context) error {
			_, err := sdk.ContainerExecCreate(ctx, "c1", container.ExecOptions{})
			return err
		},
		"exec run": func(ctx context.Context) error {
			return sdk.ContainerExecStart(ctx, "e1", container.ExecStartOptions{})
		},
		"exec attach": func(ctx context.Context) error {
			_, err := sdk.ContainerExecAttach(ctx, "e1", container.ExecAttachOptions{})
			return err
		},
		"exec look": func(ctx context.Context) error { _, err := sdk.ContainerExecInspect(ctx, "e1"); return err },
		"attach": func(ctx context.Context) error {
			_, err := sdk.ContainerAttach(ctx, "c1", container.AttachOptions{})
			return err
		},
		"logs": func(ctx context.Context) error {
			_, err := sdk.ContainerLogs(ctx, "c1", container.LogsOptions{})
			return err
		},
		"commit": func(ctx context.Context) error {
			_, err := sdk.ContainerCommit(ctx, "c1", container.CommitOptions{})
			return err
		},
		"export": func(ctx context.Context) error { _, err := sdk.ContainerExport(ctx, "c1"); return err },
		"update": func(ctx context.Context) error {
			_, err := sdk.ContainerUpdate(ctx, "c1", container.UpdateConfig{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := call(t.Context()); err == nil {
				t.Error("the call went through")
			}
		})
	}
	if got := s.calls(); len(got) != before {
		t.Errorf("the engine has seen %q", got[before:])
	}
}

func TestTheGateByMethodAndPath(t *testing.T) {
	s := newStub(t, "1.24", "1.51")
	web := engine.HTTP(s.client(t))
	for call, passes := range map[string]bool{
		"GET /version":                          true,
		"GET /v1.41/info":                       true,
		"GET /v1.41/containers/abc/json":        true,
		"DELETE /v1.51/containers/abc":          true,
		"GET /v1.41/images/a/b:c@sha256:1/json": true,
		"GET /v1.41/images/get":                 true,

		"GET /info":                             false, // unversioned
		"POST /v1.41/info":                      false,
		"GET /v2.0/info":                        false,
		"GET /v1.41/containers/abc/archive":     false,
		"PUT /v1.41/containers/abc/archive":     false,
		"HEAD /v1.41/containers/abc/archive":    false,
		"POST /v1.41/containers/abc/exec":       false,
		"POST /v1.41/exec/abc/start":            false,
		"GET /v1.41/exec/abc/json":              false,
		"POST /v1.41/containers/abc/attach":     false,
		"GET /v1.41/containers/abc/attach/ws":   false,
		"GET /v1.41/containers/abc/logs":        false,
		"POST /v1.41/commit":                    false,
		"GET /v1.41/containers/abc/export":      false,
		"POST /v1.41/containers/abc/update":     false,
		"POST /v1.41/containers/a/b/start":      false,
		"POST /v1.41/containers/prune":          false,
		"POST /v1.41/images/prune":              false,
		"POST /v1.41/build":                     false,
		"POST /v1.41/volumes/create":            false,
		"DELETE /v1.41/volumes/v":               false,
		"POST /v1.41/containers/abc/start/more": false,
		"GET /v1.41/containers/abc/json\n":      false,
	} {
		t.Run(call, func(t *testing.T) {
			method, path, _ := strings.Cut(call, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, "http://engine/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.URL.Path = path
			answer, err := web.Do(r)
			if err == nil {
				answer.Body.Close()
			}
			if (err == nil) != passes {
				t.Errorf("error %v, passes should be %v", err, passes)
			}
		})
	}
}
