package admission_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"sandboxd/internal/admission"
	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// world is what admission asks, and the record of what it asked.
type world struct {
	images map[string]any // an id, or an error
	paths  map[string]any // "dir", "file", or an error
	free   any            // bytes, or an error
	asked  []string
}

func (w *world) Resolve(_ context.Context, name string) (string, error) {
	w.asked = append(w.asked, "image "+name)
	switch v := w.images[name].(type) {
	case string:
		return v, nil
	case error:
		return "sha256:old", v
	}
	return "", job.Errorf(job.CodeImage, "image", "no such image")
}

func (w *world) Check(_ context.Context, _ job.Caller, path string) (string, bool, error) {
	w.asked = append(w.asked, "path "+path)
	switch v := w.paths[path].(type) {
	case string:
		return "/resolved" + path, v == "dir", nil
	case error:
		return "/leak", true, v
	}
	return "", false, job.Errorf(job.CodeWorkspace, "", "%q does not exist", path)
}

func (w *world) FreeDisk() (int64, error) {
	w.asked = append(w.asked, "disk")
	if err, ok := w.free.(error); ok {
		return 0, err
	}
	return w.free.(int64), nil
}

var errAway = job.Errorf(job.CodeEngine, "", "the engine is away")

func newWorld() *world {
	return &world{
		images: map[string]any{"sandboxd/base": "sha256:base", "sandboxd/base:latest": "sha256:base", "sandboxd/tiny": "sha256:tiny", "host:5000/x": "sha256:x", "away": errAway,
			"sha256:0123": "sha256:0123", "unfit": job.Errorf(job.CodeImage, "image", "carries devices"), "broken": errors.New("socket")},
		paths: map[string]any{"/src": "dir", "/src/file": "file", "/data": "dir", "/odd\xff": "dir", "/hung": job.Errorf(job.CodeWorkspace, "", "did not answer"),
			"/named": job.Errorf(job.CodeWorkspace, "elsewhere", "has a field"), "/fault": errors.New("fork: no memory")},
		free: int64(100 * gib),
	}
}

func rules() admission.Rules {
	return admission.Rules{
		Profiles: []envelope.Profile{{
			Name: "default",
			Default: envelope.Posture{Runtime: "runc", MilliCPUs: 1000, Memory: gib, Pids: 512, Nofile: 1024, TmpBytes: 128 * mib, HomeBytes: 512 * mib,
				OutBytes: 64 * mib, Inodes: 65536, HomeExec: true, OutputKeep: 512 * mib, TimeoutMS: 600_000},
			Limit: envelope.Posture{Runtime: "runc", MilliCPUs: 64_000, Memory: 64 * gib, Pids: 4096, Nofile: 65536, TmpBytes: 8 * gib, HomeBytes: 8 * gib,
				OutBytes: gib, Inodes: 1 << 20, HomeExec: true, OutputKeep: 64 * gib, TimeoutMS: 3_600_000},
			Allows: allows(), WorkspaceMode: job.WorkspaceRO,
		}, {Name: "small", Default: envelope.Posture{MilliCPUs: 100}}},
		MilliCPUs: 8000, Memory: 16 * gib, MinFreeDisk: gib, MaxQueued: 10, MaxQueuedPer: 5,
	}
}

// allows is what the profile default allows beside its posture.
func allows() envelope.Bounds {
	return envelope.Bounds{
		Mode: envelope.SingleTurn, Image: "sandboxd/base",
		Images:    []string{"sandboxd/base", "sandboxd/tiny:latest", "host:5000/x", "away", "unfit", "broken", "sha256:0123", "gone"},
		Workspace: envelope.Workspace{Mode: job.WorkspaceRW, Git: envelope.GitRO}, Egress: envelope.EgressNone,
		Budget: budget.Limits{}, BudgetInherit: envelope.BudgetShare, Delegates: []string{"small", "helper"}, MaxDepth: 2, MaxTreeJobs: 64, MaxTreeLive: 8,
		Detached: true, EnvInherit: []string{"LANG", "TZ"}, Secrets: []string{"token"}, Trust: envelope.Trusted, MaxRisk: envelope.RiskCode,
		Tools: envelope.Tools{Allow: []string{"*"}},
	}
}

var alice = job.HostCaller(1000, 1000, []uint32{1000, 27}, 1, false)

func plain() admission.Request { return admission.Request{Command: []string{"true"}} }

// with changes a plain request.
func with(change func(*admission.Request)) admission.Request {
	r := plain()
	change(&r)
	return r
}

func check(w *world, c job.Caller, r admission.Request) (admission.Admitted, error) {
	return admission.New(rules(), w, w, w).Check(context.Background(), c, nil, r)
}

func p[T any](v T) *T { return &v }

func (w *world) askedFor(what string) bool { return slices.Contains(w.asked, what) }
