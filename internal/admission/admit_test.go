package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/admission"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

func TestPlainRequestGetsTheDefaults(t *testing.T) {
	w := newWorld()
	a, err := check(w, alice, plain())
	if err != nil {
		t.Fatal(err)
	}
	want := job.Spec{Command: []string{"true"}, Image: "sandboxd/base", ImageID: "sha256:base", Profile: "default", Workdir: "/home/job", Result: "exit", Priority: 5,
		Agent: &job.AgentTerms{Trust: "trusted", MaxRisk: "code_execution", ToolsAllow: []string{"*"}, Mode: "single_turn"}}
	if diff := cmp.Diff(want, a.Spec); diff != "" {
		t.Error(diff)
	}
	posture := rules().Profiles[0].Default
	posture.ImageID = "sha256:base"
	if diff := cmp.Diff(posture, a.Envelope.Posture); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]envelope.Origin{}, a.Envelope.Origins); diff != "" {
		t.Error(diff)
	}
	var frozen envelope.Envelope
	if err := json.Unmarshal(a.Frozen, &frozen); err != nil || !cmp.Equal(frozen, a.Envelope) {
		t.Errorf("frozen as %s: %v", a.Frozen, err)
	}
	if diff := cmp.Diff([]string{"disk", "image sandboxd/base"}, w.asked); diff != "" {
		t.Error(diff)
	}
}

func TestEverythingARequestMayCarryIsKept(t *testing.T) {
	r := admission.Request{
		Command: []string{"sh", "-c", "echo $X\n", ""}, Image: "sandboxd/tiny", Profile: "default", Role: "réviseur", Skills: []string{"go", "git"},
		Task: &job.Task{Goal: "g\x00", Context: "c\n", Guidance: "u"}, Env: []job.EnvVar{{Name: "A", Value: "1\n="}, {Name: "a", Value: ""}, {Name: "Ünï", Value: "x"}},
		Stdin: []byte{0, 1}, Workdir: "/workspace/../workspace/x/", Workspace: &job.Workspace{Path: "/src"},
		Mounts:    []job.Mount{{Source: "/data", Name: "data"}, {Source: "/src/file", Name: "a.b-c_D"}},
		Limits:    admission.Limits{MilliCPUs: p[int64](2000), Memory: p[int64](2 * gib), Pids: p[int64](9), Nofile: p[int64](99), TmpBytes: p[int64](mib), HomeBytes: p[int64](mib), OutBytes: p[int64](mib), OutputKeep: p[int64](mib)},
		TimeoutMS: p[int64](1000), Result: "exit", Labels: map[string]string{"k": "v", "team/x": "", "日本": "語"}, Name: "n", Priority: p(0), Lease: true,
		Session: "s", IdempotencyKey: "key", Trust: "Trusted", MaxRisk: "safe", Mode: "single_turn", Model: "m",
		Tools: admission.Tools{Allow: []string{"read"}, Deny: []string{"shell"}}, Egress: &admission.Egress{Mode: "none"},
	}
	a, err := check(newWorld(), alice, r)
	if err != nil {
		t.Fatal(err)
	}
	want := job.Spec{
		Command: r.Command, Image: "sandboxd/tiny", ImageID: "sha256:tiny", Profile: "default", Role: r.Role, Skills: r.Skills, Task: r.Task, Env: r.Env,
		Stdin: job.StdinBytes, StdinData: r.Stdin, Workdir: "/workspace/x", Workspace: &job.Workspace{Path: "/resolved/src", Mode: job.WorkspaceRO},
		Mounts: []job.Mount{{Source: "/resolved/data", Name: "data"}, {Source: "/resolved/src/file", Name: "a.b-c_D"}},
		Result: "exit", Labels: r.Labels, Name: "n", Priority: 0, Lease: true, Session: "s",
		Agent: &job.AgentTerms{Trust: "untrusted", MaxRisk: "safe", ToolsAllow: []string{"read"}, ToolsDeny: []string{"shell"}, Mode: "single_turn", Model: "m"},
	}
	if diff := cmp.Diff(want, a.Spec); diff != "" {
		t.Error(diff)
	}
	for _, name := range envelope.AmountNames() {
		if a.Envelope.Origins[name] != envelope.FromRequest {
			t.Errorf("%s comes from %q", name, a.Envelope.Origins[name])
		}
	}
}

func TestStdinAndWorkdirFollowWhatIsThere(t *testing.T) {
	for _, c := range []struct {
		name    string
		r       admission.Request
		stdin   job.StdinMode
		workdir string
	}{
		{"nothing", plain(), job.StdinNone, "/home/job"},
		{"empty bytes", with(func(r *admission.Request) { r.Stdin = []byte{} }), job.StdinNone, "/home/job"},
		{"a stream", with(func(r *admission.Request) { r.StdinStream = true }), job.StdinStream, "/home/job"},
		{"a workspace", with(func(r *admission.Request) { r.Workspace = &job.Workspace{Path: "/src", Mode: "ro"} }), job.StdinNone, "/workspace"},
		{"a workdir", with(func(r *admission.Request) { r.Workdir = "/tmp//a/./b/.." }), job.StdinNone, "/tmp/a"},
	} {
		a, err := check(newWorld(), alice, c.r)
		if err != nil || a.Spec.Stdin != c.stdin || a.Spec.Workdir != c.workdir {
			t.Errorf("%s: stdin %q, workdir %q, %v", c.name, a.Spec.Stdin, a.Spec.Workdir, err)
		}
	}
}

func TestImagesOfTheRosterAreResolved(t *testing.T) {
	for name, c := range map[string]struct{ ask, id string }{
		"as listed":         {"sandboxd/base", "sha256:base"},
		"with the tag":      {"sandboxd/base:latest", "sha256:base"},
		"without the tag":   {"sandboxd/tiny", "sha256:tiny"},
		"a port is no tag":  {"host:5000/x", "sha256:x"},
		"an id":             {"sha256:0123", "sha256:0123"},
		"engine away":       {"away", ""},
		"engine away again": {"away", ""},
	} {
		a, err := check(newWorld(), alice, with(func(r *admission.Request) { r.Image = c.ask }))
		if err != nil || a.Spec.Image != c.ask || a.Spec.ImageID != c.id || a.Envelope.Posture.ImageID != c.id || a.Envelope.Origins["image"] != envelope.FromRequest {
			t.Errorf("%s: %q, %q, %v", name, a.Spec.Image, a.Spec.ImageID, err)
		}
	}
}

func TestSizesYieldToTheMemoryAsked(t *testing.T) {
	a, err := check(newWorld(), alice, with(func(r *admission.Request) { r.Limits.Memory = p[int64](128 * mib) }))
	if err != nil || a.Envelope.Origins["home_bytes"] != envelope.Clamped || a.Envelope.Posture.HomeBytes >= 80*mib {
		t.Errorf("%+v, %v", a.Envelope, err)
	}
}

func TestChecksStandInTheirOrder(t *testing.T) {
	want := []string{"command", "environment", "words", "labels", "modes", "profile", "places", "envelope", "capacity", "disk", "paths", "image", "whole"}
	if diff := cmp.Diff(want, admission.CheckNames()); diff != "" {
		t.Error(diff)
	}
	c := admission.New(rules(), nil, nil, nil)
	if all, per := c.Bounds(); all != 10 || per != 5 {
		t.Errorf("bounds %d, %d", all, per)
	}
}

// A request wrong in every way is refused for the first, then the next …; what costs something is asked only by what
// passed all before it.
func TestTheFirstFaultDecidesAndNothingLaterIsAsked(t *testing.T) {
	faults := []struct {
		field string
		spoil func(*admission.Request)
		asked int // questions to the world up to this refusal
	}{
		{"command", func(r *admission.Request) { r.Command = nil }, 0},
		{"env", func(r *admission.Request) { r.Env = []job.EnvVar{{Name: ""}} }, 0},
		{"name", func(r *admission.Request) { r.Name = "-" }, 0},
		{"labels", func(r *admission.Request) { r.Labels = map[string]string{"": ""} }, 0},
		{"result", func(r *admission.Request) { r.Result = "x" }, 0},
		{"profile", func(r *admission.Request) { r.Profile = "x" }, 0},
		{"mounts", func(r *admission.Request) { r.Mounts = []job.Mount{{Source: "/data", Name: "-"}} }, 0},
		{"timeout", func(r *admission.Request) { r.TimeoutMS = p[int64](0) }, 0},
		{"limits.cpus", func(r *admission.Request) { r.Limits.MilliCPUs = p[int64](9000) }, 0},
		{"", func(r *admission.Request) { r.Limits.OutputKeep = p[int64](64 * gib) }, 1},
		{"workspace", func(r *admission.Request) { r.Workspace = &job.Workspace{Path: "/none"} }, 2},
		{"image", func(r *admission.Request) { r.Image = "gone" }, 2},
	}
	if len(faults)+1 != len(admission.CheckNames()) { // for a root the last finds no more than those before it
		t.Fatalf("%d faults for %d checks", len(faults), len(admission.CheckNames()))
	}
	for i := range faults {
		r := plain()
		for _, f := range faults[i:] {
			f.spoil(&r)
		}
		w := newWorld()
		if i == 9 {
			w.free = int64(10 * gib)
		}
		_, err := check(w, alice, r)
		var e *job.Error
		if !errors.As(err, &e) || e.Field != faults[i].field || len(w.asked) != faults[i].asked {
			t.Errorf("%s: refused for %v after asking %v", admission.CheckNames()[i], err, w.asked)
		}
	}
}

func TestChecksRunUnderTheCallersContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	seen := contextual{}
	c := admission.New(rules(), &seen, &seen, newWorld())
	r := with(func(r *admission.Request) { r.Workspace = &job.Workspace{Path: "/src"} })
	if _, err := c.Check(ctx, alice, nil, r); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

type contextual struct{}

func (*contextual) Resolve(ctx context.Context, _ string) (string, error) { return "", ctx.Err() }
func (*contextual) Check(ctx context.Context, _ job.Caller, _ string) (string, bool, error) {
	return "", false, ctx.Err()
}
