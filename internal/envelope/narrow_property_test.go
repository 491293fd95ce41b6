package envelope_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// For any profiles, parent, project and request: what is admitted is within the parent field by field, and within the
// profile in what no parent could give; what was asked is what is had; and nothing that was given is changed.
func TestWhateverIsAdmittedIsWithinWhatStandsAbove(t *testing.T) {
	admitted, refused, deep := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := aProfile(t, "root's")
		p.Allows.Delegates = append(slices.DeleteFunc(slices.Clone(p.Allows.Delegates), func(name string) bool { return name == "delta" }), "delta")
		r := rootRequest(t)
		e, bad := envelope.Narrow(envelope.Above{Profile: &p}, r)
		for depth := int64(0); ; depth++ {
			if len(bad) > 0 {
				refused++
				refusal(t, e, bad)
				return
			}
			admitted++
			if e.Depth != depth {
				t.Fatalf("depth %d of %d", e.Depth, depth)
			}
			frozen(t, e)
			asked(t, r, e)
			parent := e
			a := envelope.Above{Parent: &parent, ParentID: parentID, LeftMS: pick(t, "left", []int64{20_000, 20_000, 5000, 1000, 999, -1})}
			if rapid.IntRange(0, 2).Draw(t, "names a profile") == 0 {
				q := aProfile(t, "child's")
				if len(e.Delegates) > 0 && rapid.IntRange(0, 9).Draw(t, "is of the roster") > 0 {
					q.Name = pick(t, "delegate", e.Delegates)
				}
				a.Profile = &q
			}
			if rapid.IntRange(0, 4).Draw(t, "has operator limits") == 0 {
				l := aProfile(t, "limits")
				a.Limits = &l
			}
			if rapid.IntRange(0, 5).Draw(t, "has a project") == 0 {
				project := aRequest(t, "project")
				a.Project = &project
			}
			r = aRequest(t, "child")
			e, bad = envelope.Narrow(a, r)
			if len(bad) == 0 {
				within(t, e, a)
				deep++
			}
		}
	})
	t.Logf("%d admitted, %d of them children; %d refused", admitted, deep, refused)
	if admitted == 0 || refused == 0 || deep == 0 {
		t.Error("the generator tries one side only")
	}
}

// rootRequest draws a request that a root's profile mostly allows, so that there are trees.
func rootRequest(t *rapid.T) envelope.Request {
	if rapid.IntRange(0, 3).Draw(t, "root asks") == 0 {
		return aRequest(t, "root")
	}
	return envelope.Request{WorkspacePath: pick(t, "root path", []string{"", "/srv", "/srv/a"}), Mounts: []job.Mount{{Source: "/data", Name: "d"}}}
}

func refusal(t *rapid.T, e envelope.Envelope, bad []envelope.Violation) {
	if !cmp.Equal(e, envelope.Envelope{}) {
		t.Fatalf("an envelope beside a refusal: %+v", e)
	}
	for _, v := range bad {
		if v.Field == "" || v.Asked == "" || v.Allowed == "" || v.Why == "" || v.Code == "" {
			t.Fatalf("%+v", v)
		}
	}
	if d := envelope.Denial(bad); d.Code.HTTPStatus() >= 500 || len(d.Violations) != len(bad) {
		t.Fatalf("%+v", d)
	}
}

func within(t *rapid.T, e envelope.Envelope, a envelope.Above) {
	if bad := envelope.Subset(e, *a.Parent); len(bad) > 0 {
		t.Fatalf("wider than the parent: %+v", bad)
	}
	if e.Posture.TimeoutMS > a.LeftMS || e.BudgetInherit != a.Parent.BudgetInherit || e.Depth != a.Parent.Depth+1 {
		t.Fatalf("%d ms of %d, %s, depth %d", e.Posture.TimeoutMS, a.LeftMS, e.BudgetInherit, e.Depth)
	}
	free := []string{"profile", "depth", "image", "budget_inherit"} // not the profile's to bound
	for _, top := range []*envelope.Profile{a.Profile, a.Limits} {
		if top == nil {
			continue
		}
		for _, v := range envelope.Subset(e, top.Ceiling()) {
			if !slices.Contains(free, v.Field) {
				t.Fatalf("wider than %s: %+v", top.Name, v)
			}
		}
	}
}

// asked holds an admitted envelope to the request: nothing was dropped or exchanged.
func asked(t *rapid.T, r envelope.Request, e envelope.Envelope) {
	for name, want := range r.Amounts {
		got, _ := e.Posture.Amount(name)
		if got != want && (name != "timeout" || r.Strict || got > want || e.Origins[name] != envelope.Clamped) {
			t.Fatalf("%s: asked %d, got %d from %s", name, want, got, e.Origins[name])
		}
	}
	for d, want := range r.Budget {
		if got := e.Budget[d]; got != want && (r.Strict || got > want || e.Origins[d.Field()] != envelope.Clamped) {
			t.Fatalf("%s: asked %d, got %d from %s", d, want, got, e.Origins[d.Field()])
		}
	}
	for what, both := range map[string][2]string{
		"image": {r.Image, e.Image}, "runtime": {r.Runtime, e.Posture.Runtime}, "path": {r.WorkspacePath, e.Workspace.Path}, "max_risk": {r.MaxRisk, e.MaxRisk}, "mode": {r.Mode, e.Mode},
	} {
		if both[0] != "" && both[0] != both[1] {
			t.Fatalf("%s: asked %s, got %s", what, both[0], both[1])
		}
	}
	if r.WorkspaceMode != "" && e.Workspace.Path != "" && string(e.Workspace.Mode) != r.WorkspaceMode {
		t.Fatalf("asked %s, got %s", r.WorkspaceMode, e.Workspace.Mode)
	}
	if r.Trust != "" && e.Trust != envelope.TrustOf(r.Trust) {
		t.Fatalf("asked trust %q, got %s", r.Trust, e.Trust)
	}
	for _, tool := range r.ToolsDeny {
		if !slices.Contains(e.Tools.Deny, tool) {
			t.Fatalf("%s is not denied: %v", tool, e.Tools.Deny)
		}
	}
}

// frozen holds an envelope to what every one of them is: bound by risk, and the same when it is read back.
func frozen(t *rapid.T, e envelope.Envelope) {
	w := e.Workspace
	if w.Path != "" && (e.Below(envelope.RiskLocalWrite) && w.Mode != job.WorkspaceRO || e.Trust != envelope.Trusted && (w.Mode == job.WorkspaceRW || w.Live || w.Git == "rw")) {
		t.Fatalf("%s and %s with a workspace %+v", e.MaxRisk, e.Trust, w)
	}
	if wall, limited := e.Budget.Of(budget.WallMS); limited && e.Posture.TimeoutMS > wall {
		t.Fatalf("%d ms under a budget of %d", e.Posture.TimeoutMS, wall)
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back envelope.Envelope
	if err := json.Unmarshal(b, &back); err != nil || !cmp.Equal(e, back) {
		t.Fatalf("%v: %s", err, cmp.Diff(e, back))
	}
}

// A stored envelope that lacks any field reads back as one within the whole, so that a record of before widens nothing.
func TestAnEnvelopeThatLacksAFieldIsNarrower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anEnvelope(t, "e")
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(b, &fields); err != nil {
			t.Fatal(err)
		}
		kept := []string{"posture", "profile", "image", "depth"} // older than the bounds, or compared otherwise
		names := slices.DeleteFunc(slices.Sorted(mapsKeys(fields)), func(name string) bool { return slices.Contains(kept, name) })
		delete(fields, pick(t, "lacks", names))
		if b, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		var back envelope.Envelope
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		for _, v := range envelope.Subset(back, e) {
			if v.Field != "profile" && v.Field != "tools.deny" {
				t.Fatalf("wider: %+v", v)
			}
		}
	})
}

// Whatever stands in a request, Narrow returns, and one of both.
func FuzzNarrow(f *testing.F) {
	f.Add([]byte(`{"Amounts":{"memory":-1},"Trust":" trusted","Budget":{"cpu_ms":5}}`), int64(5))
	f.Add([]byte(`{"WorkspacePath":"/a/../b","Mounts":[{"source":"","name":""}],"ToolsAllow":["*"]}`), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, text []byte, left int64) {
		var r envelope.Request
		if json.Unmarshal(text, &r) != nil {
			return
		}
		p := team()
		parent, bad := envelope.Narrow(envelope.Above{Profile: &p}, envelope.Request{WorkspacePath: "/srv"})
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		a := envelope.Above{Parent: &parent, LeftMS: left, Profile: &p}
		e, bad := envelope.Narrow(a, r)
		if len(bad) == 0 == cmp.Equal(e, envelope.Envelope{}) {
			t.Fatalf("%+v beside %+v", e, bad)
		}
		if wide := envelope.Subset(e, parent); len(bad) == 0 && len(wide) > 0 {
			t.Fatalf("%+v", wide)
		}
		for _, v := range bad {
			if v.Field == "" || v.Code == "" || len(v.Asked) > 5000 {
				t.Fatalf("%+v", v)
			}
		}
	})
}
