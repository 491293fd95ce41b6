package admission_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/admission"
	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

const parentID = job.ID("0191e0c2-1f3a-7c4d-8e5f-001122334455")

// helper is a profile that children get: as wide as the default.
func helper() envelope.Profile {
	p := rules().Profiles[0]
	p.Name = "helper"
	p.Allows.Delegates = nil
	return p
}

// delegating are the rules under which there are children.
func delegating() admission.Rules {
	r := rules()
	r.Profiles = append(r.Profiles, helper())
	return r
}

// newParent is a job with a workspace, a mount and a budget, admitted as any other.
func newParent(t *testing.T, change ...func(*admission.Request)) *admission.Parent {
	t.Helper()
	r := with(workspace("/src", ""))
	r.Mounts = []job.Mount{{Source: "/data", Name: "data"}}
	r.Env = []job.EnvVar{{Name: "LANG", Value: "C"}, {Name: "PRIVATE", Value: "p"}, {Name: "TZ", Value: "UTC"}}
	r.Budget = admission.Budget{CPUMS: p[int64](60_000), InputTokens: p[int64](1000)}
	for _, c := range change {
		c(&r)
	}
	w := newWorld()
	a, err := admission.New(delegating(), w, w, w).Check(t.Context(), alice, nil, r)
	if err != nil {
		t.Fatal(err)
	}
	var e envelope.Envelope
	if err := json.Unmarshal(a.Frozen, &e); err != nil {
		t.Fatal(err)
	}
	j := job.Job{ID: parentID, Root: parentID, OwnerUID: 1000, OwnerGID: 1000, Groups: alice.Groups, Spec: a.Spec, State: job.Running}
	return &admission.Parent{Job: j, Envelope: e, LeftMS: 300_000}
}

// within makes the paths of the parent known to the world, as what they are resolved to.
func within(w *world) *world {
	for path, v := range map[string]any{"/resolved/src": "dir", "/resolved/src/sub": "dir", "/resolved/data": "dir", "/resolved/data/f": "file"} {
		w.paths[path] = v
	}
	return w
}

func checkChild(w *world, parent *admission.Parent, r admission.Request) (admission.Admitted, error) {
	return admission.New(delegating(), w, w, w).Check(context.Background(), job.JobCaller(parent.Job), parent, r)
}

// helping asks for a child of profile helper.
func helping(change ...func(*admission.Request)) admission.Request {
	r := with(func(r *admission.Request) { r.Profile = "helper" })
	for _, c := range change {
		c(&r)
	}
	return r
}

func TestAChildThatAsksNothingGetsWhatItsParentHas(t *testing.T) {
	parent, w := newParent(t), within(newWorld())
	a, err := checkChild(w, parent, helping())
	if err != nil {
		t.Fatal(err)
	}
	want := parent.Job.Spec
	want.Profile = "helper"
	want.Env = []job.EnvVar{{Name: "LANG", Value: "C"}, {Name: "TZ", Value: "UTC"}}
	if diff := cmp.Diff(want, a.Spec); diff != "" {
		t.Error(diff)
	}
	if bad := envelope.Subset(a.Envelope, parent.Envelope); len(bad) > 0 {
		t.Error(bad)
	}
	if a.Envelope.Depth != 1 || a.Envelope.Posture.TimeoutMS != 300_000 || a.Envelope.Origins["memory"] != envelope.FromParent(parentID) {
		t.Errorf("%+v", a.Envelope)
	}
	if diff := cmp.Diff([]string{"disk"}, w.asked); diff != "" {
		t.Errorf("nothing new is to be resolved: %s", diff)
	}
	if len(a.Budget) > 0 || a.Inherit != "share" || a.Strict || a.Places != 7 || a.Caps != (admission.Caps{MaxJobs: 64, MaxLive: 8}) {
		t.Errorf("%+v", a)
	}
}

func TestARootAsksForItsWholeBudget(t *testing.T) {
	w := newWorld()
	a, err := check(w, alice, with(func(r *admission.Request) {
		r.Budget = admission.Budget{CPUMS: p[int64](5), Strict: true}
		r.MaxTreeLive, r.MaxTreeJobs = p[int64](1), p[int64](3)
	}))
	if err != nil || !cmp.Equal(a.Budget, budget.Limits{budget.CPUMS: 5}) || !a.Strict || a.Places != 0 || a.Caps != (admission.Caps{MaxJobs: 3, MaxLive: 1}) {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAChildsEnvironment(t *testing.T) {
	parent := newParent(t)
	a, err := checkChild(within(newWorld()), parent, helping(func(r *admission.Request) { r.Env = []job.EnvVar{{Name: "A", Value: "1"}, {Name: "TZ", Value: "CET"}} }))
	want := []job.EnvVar{{Name: "A", Value: "1"}, {Name: "LANG", Value: "C"}, {Name: "TZ", Value: "CET"}}
	if err != nil || !cmp.Equal(a.Spec.Env, want) {
		t.Errorf("%v, %v", a.Spec.Env, err)
	}
	parent.Envelope.EnvInherit = nil
	if a, err := checkChild(within(newWorld()), parent, helping()); err != nil || len(a.Spec.Env) > 0 {
		t.Errorf("%v, %v", a.Spec.Env, err)
	}
}

func TestAChildNarrows(t *testing.T) {
	a, err := newLinks().child(newParent(t), helping(func(r *admission.Request) {
		r.Budget = admission.Budget{CPUMS: p[int64](500), Strict: true}
		r.Limits.Memory, r.Trust, r.MaxDepth, r.Lease = p[int64](700*mib), " trusted", p[int64](1), true
		r.Tools.Deny, r.Delegates, r.Secrets = []string{"shell"}, []string{}, []string{}
		r.Project = &admission.Project{MaxRisk: "safe", Limits: admission.Limits{Pids: p[int64](7)}}
		r.Workspace, r.Mounts = &job.Workspace{Path: "/workspace/./sub/"}, []job.Mount{{Source: "/mnt/data", Name: "f"}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	e := a.Envelope
	if e.Trust != "untrusted" || e.MaxRisk != "safe" || e.Posture.Pids != 7 || e.Posture.Memory != 700*mib || e.Detached || !a.Spec.Lease {
		t.Errorf("%+v", e)
	}
	if !cmp.Equal(a.Budget, budget.Limits{budget.CPUMS: 500}) || !a.Strict {
		t.Errorf("%v", a.Budget)
	}
	if a.Spec.Workspace.Path != "/resolved/src/sub" {
		t.Errorf("%+v", a.Spec.Workspace)
	}
}

func TestAChildsImage(t *testing.T) {
	for name, c := range map[string]struct {
		ask, id string
		asked   bool
	}{
		"its parent's":              {"sandboxd/base", "sha256:base", false},
		"its parent's with the tag": {"sandboxd/base:latest", "sha256:base", false},
		"its parent's by id":        {"sha256:base", "sha256:base", false},
		"another name of it":        {"alias", "sha256:base", true},
		"another that is allowed":   {"sandboxd/tiny", "sha256:tiny", true},
		"allowed, engine away":      {"away", "", true},
	} {
		w := within(newWorld())
		w.images["alias"] = "sha256:base"
		a, err := checkChild(w, newParent(t), helping(image(c.ask)))
		if err != nil || a.Spec.ImageID != c.id || a.Envelope.Posture.ImageID != c.id || a.Spec.Image != c.ask || w.askedFor("image "+c.ask) != c.asked {
			t.Errorf("%s: %+v, %v", name, a.Spec, err)
		}
	}
}

// What every profile of an operator may have holds a child of an older, wider parent as well.
func TestLimitsHoldAChildOfAWiderParent(t *testing.T) {
	r, limits := delegating(), helper()
	limits.Default.Pids, limits.Limit.Pids = 10, 10
	limits.Allows.Delegates = []string{"*"}
	r.Limits = &limits
	w := within(newWorld())
	parent := newParent(t)
	a, err := admission.New(r, w, w, w).Check(t.Context(), job.JobCaller(parent.Job), parent, helping())
	if err != nil || a.Envelope.Posture.Pids != 10 {
		t.Errorf("%d, %v", a.Envelope.Posture.Pids, err)
	}
}

func TestACallerIsTheParentGiven(t *testing.T) {
	w, parent := newWorld(), newParent(t)
	other := job.JobCaller(job.Job{ID: "0191e0c2-1f3a-7c4d-8e5f-999999999999"})
	c := admission.New(delegating(), w, w, w)
	for _, tt := range []struct {
		caller job.Caller
		parent *admission.Parent
	}{{other, nil}, {other, parent}, {alice, parent}, {job.Caller{}, &admission.Parent{}}} {
		if a, err := c.Check(t.Context(), tt.caller, tt.parent, helping()); job.CodeOf(err) != job.CodeInternal || len(a.Frozen) > 0 {
			t.Errorf("%+v: %v", tt.caller, err)
		}
	}
}

func TestAChildDoesNotLearnWhichImagesTheHostHas(t *testing.T) {
	var says []string
	for _, name := range []string{"present", "absent"} {
		w := within(newWorld())
		w.images["present"] = "sha256:present"
		_, err := checkChild(w, newParent(t), helping(image(name)))
		if job.CodeOf(err) != job.CodeNotSubset {
			t.Fatal(err)
		}
		says = append(says, strings.ReplaceAll(err.Error(), name, "NAME"))
	}
	if says[0] != says[1] {
		t.Errorf("%q", says)
	}
	if _, err := checkChild(within(newWorld()), newParent(t), helping(image("unfit"))); job.CodeOf(err) != job.CodeImage {
		t.Error(err)
	}
	if _, err := checkChild(within(newWorld()), newParent(t), helping(image("broken"))); job.CodeOf(err) != job.CodeInternal {
		t.Error(err)
	}
}

// What a profile gives by itself is held to what is served; what is asked beyond it is refused by name.
func TestOnlyReadOnlyWorkspacesAreServed(t *testing.T) {
	r, w := rules(), newWorld()
	d := &r.Profiles[0]
	d.WorkspaceMode, d.Allows.Workspace = job.WorkspaceRW, envelope.Workspace{Mode: job.WorkspaceRW, Git: envelope.GitRW, Live: true}
	a, err := admission.New(r, w, w, w).Check(t.Context(), alice, nil, with(workspace("/src", "")))
	if err != nil || a.Spec.Workspace.Mode != "ro" || a.Envelope.Workspace != (envelope.Workspace{Path: "/resolved/src", Mode: "ro", Git: "ro"}) || a.Envelope.Origins["workspace.mode"] != envelope.Clamped {
		t.Errorf("%+v, %v", a.Envelope, err)
	}
	_, err = check(w, alice, with(func(r *admission.Request) { r.Secrets = []string{"token"} }))
	if job.CodeOf(err) != job.CodeInvalid || !strings.Contains(err.Error(), "secrets are not served") {
		t.Error(err)
	}
}

func TestAProfileWithoutAnImageNeedsOne(t *testing.T) {
	r, w := rules(), newWorld()
	r.Profiles[0].Allows.Image = ""
	c := admission.New(r, w, w, w)
	if _, err := c.Check(t.Context(), alice, nil, plain()); job.CodeOf(err) != job.CodeImage {
		t.Error(err)
	}
	if _, err := c.Check(t.Context(), alice, nil, with(image("sandboxd/tiny"))); err != nil {
		t.Error(err)
	}
}

func TestOperatorsBudgetsAreWhole(t *testing.T) {
	parent := newParent(t)
	parent.Envelope.BudgetInherit = envelope.BudgetOperator
	a, err := checkChild(within(newWorld()), parent, helping())
	if err != nil || a.Inherit != "operator" || a.Budget[budget.CPUMS] != 60_000 {
		t.Errorf("%+v, %v", a, err)
	}
}
