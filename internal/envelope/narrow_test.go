package envelope_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

const parentID = job.ID("0191e0c2-1f3a-7c4d-8e5f-001122334455")

// team is a profile that may delegate.
func team() envelope.Profile {
	p := plain()
	p.Name, p.WorkspaceMode = "team", job.WorkspaceRO
	p.Default.Inodes, p.Limit.Inodes = 65536, 65536
	p.Allows = envelope.Bounds{
		Mode: envelope.SingleTurn, Image: "base", Images: []string{"base", "tiny"}, Workspace: envelope.Workspace{Mode: job.WorkspaceRW, Git: "ro"},
		Egress: envelope.EgressNone, Budget: budget.Limits{budget.CPUMS: 60_000}, BudgetInherit: envelope.BudgetShare,
		Delegates: []string{"helper", "leaf"}, MaxDepth: 2, MaxTreeJobs: 64, MaxTreeLive: 8, Detached: true, RetentionMS: 3_600_000,
		EnvInherit: []string{"LANG"}, Secrets: []string{"token"}, Trust: envelope.Trusted, MaxRisk: envelope.RiskCode, Tools: envelope.Tools{Allow: []string{"read", "write"}, Deny: []string{"rm"}},
	}
	p.Default.ImageID = ""
	return p
}

// helper is tighter than team in some fields and wider in others.
func helper() envelope.Profile {
	p := team()
	p.Name = "helper"
	p.Default.Memory, p.Limit.Memory = 512*mib, 16*gib
	p.Default.TmpBytes, p.Default.HomeBytes, p.Default.OutBytes = 16*mib, 64*mib, 16*mib
	p.Allows.Trust, p.Allows.MaxRisk, p.Allows.Delegates = envelope.Untrusted, "blocked", []string{"leaf", "team"}
	p.Allows.Tools = envelope.Tools{Allow: []string{"read", "search"}, Deny: []string{"mv"}}
	p.Allows.MaxTreeJobs = 1000
	p.Allows.Budget = budget.Limits{budget.ToolCalls: 5}
	return p
}

func root(t *testing.T, r envelope.Request) envelope.Envelope {
	t.Helper()
	p := team()
	e, bad := envelope.Narrow(envelope.Above{Profile: &p}, r)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return e
}

// below a root in a read-write workspace with one mount.
func below(t *testing.T, profile *envelope.Profile, r envelope.Request) (envelope.Envelope, []envelope.Violation) {
	t.Helper()
	parent := root(t, envelope.Request{Image: "base", ImageID: "sha256:0a", WorkspacePath: "/srv/a", WorkspaceMode: "rw", Mounts: []job.Mount{{Source: "/data/in", Name: "in"}}})
	before, _ := json.Marshal(parent)
	e, bad := envelope.Narrow(envelope.Above{Parent: &parent, ParentID: parentID, LeftMS: 500_000, Profile: profile}, r)
	if after, _ := json.Marshal(parent); string(before) != string(after) {
		t.Error("the parent was changed")
	}
	return e, bad
}

func TestARootThatAsksNothingIsItsProfile(t *testing.T) {
	p := team()
	e := root(t, envelope.Request{})
	want := p.Start()
	want.Workspace = envelope.Workspace{Mode: job.WorkspaceRO, Git: "ro"}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
	if bad := envelope.Subset(e, p.Ceiling()); len(bad) > 0 {
		t.Errorf("%+v", bad)
	}
}

func TestAChildInheritsItsParent(t *testing.T) {
	parent := root(t, envelope.Request{Image: "base", ImageID: "sha256:0a", WorkspacePath: "/srv/a", WorkspaceMode: "rw", Mounts: []job.Mount{{Source: "/data/in", Name: "in"}}})
	e, bad := below(t, nil, envelope.Request{})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	want := parent
	want.Depth, want.Posture.TimeoutMS = 1, 500_000 // the parent's time runs
	want.Origins = map[string]envelope.Origin{}
	for _, name := range envelope.FieldNames() {
		want.Origins[name] = envelope.FromParent(parentID)
	}
	want.Origins["timeout"] = envelope.Clamped
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
}

// Where a profile is named, the tighter of parent and profile is taken without a word of fault.
func TestANamedProfileAndTheParentMeet(t *testing.T) {
	p := helper()
	e, bad := below(t, &p, envelope.Request{})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	for _, c := range []struct {
		field, value string
		origin       envelope.Origin
	}{
		{"profile", "helper", "request"}, {"memory", "512MiB", "profile:helper"}, {"home_bytes", "64MiB", "profile:helper"}, {"pids", "512", envelope.FromParent(parentID)},
		{"trust", "untrusted", "profile:helper"}, {"max_risk", "code_execution", envelope.FromParent(parentID)}, {"delegates", "leaf", "profile:helper"},
		{"tools.allow", "read", "profile:helper"}, {"tools.deny", "rm, mv", "profile:helper"}, {"max_tree_jobs", "64", envelope.FromParent(parentID)},
		{"workspace.path", "/srv/a", envelope.FromParent(parentID)}, {"workspace.mode", "ro", "profile:helper"}, {"mounts", "/data/in:in", envelope.FromParent(parentID)},
		{"budget.cpu_ms", "1m0s", envelope.FromParent(parentID)}, {"budget.tool_calls", "5", "profile:helper"}, {"image", "sha256:0a", envelope.FromParent(parentID)}, {"depth", "1", envelope.FromParent(parentID)},
	} {
		i := slices.IndexFunc(e.Fields(), func(f envelope.Field) bool { return f.Name == c.field })
		if f := e.Fields()[i]; f.Value != c.value || f.Origin != c.origin {
			t.Errorf("%s = %s from %s, want %s from %s", c.field, f.Value, f.Origin, c.value, c.origin)
		}
	}
}

func TestWhatAChildAsksAndIsNarrowerIsTaken(t *testing.T) {
	r := envelope.Request{
		Image: "tiny", ImageID: "sha256:0b", Images: []string{"tiny"}, Runtime: "runsc", Amounts: envelope.Ask{"memory": 900 * mib, "timeout": 60_000, "cpus": 500},
		WorkspacePath: "/srv/a/src", WorkspaceMode: "overlay", WorkspaceGit: "ro", WorkspaceLive: new(false), Mounts: []job.Mount{{Source: "/data/in/x", Name: "x"}},
		Egress: "none", Budget: budget.Limits{budget.CPUMS: 5000, budget.ToolCalls: 3}, MaxDepth: new(int64(1)), MaxTreeJobs: new(int64(9)), MaxTreeLive: new(int64(2)),
		Delegates: []string{}, Lease: new(true), RetentionMS: new(int64(1000)), EnvInherit: []string{}, Secrets: []string{}, Trust: "no", MaxRisk: "install",
		ToolsAllow: []string{"read"}, ToolsDeny: []string{"curl"}, Mode: "single_turn", Strict: true,
	}
	e, bad := below(t, nil, r)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	values := map[string]string{"image": "sha256:0b", "images": "tiny", "runtime": "runsc", "memory": "900MiB", "timeout": "1m0s", "cpus": "0.5", "workspace.path": "/srv/a/src",
		"workspace.mode": "overlay", "workspace.git": "ro", "workspace.live": "false", "mounts": "/data/in/x:x", "egress": "none", "budget.cpu_ms": "5s", "budget.tool_calls": "3",
		"max_depth": "1", "max_tree_jobs": "9", "max_tree_live": "2", "delegates": "none", "lease": "true", "retention": "1s", "env_inherit": "none", "secrets": "none",
		"trust": "untrusted", "max_risk": "install", "tools.allow": "read", "tools.deny": "rm, curl", "mode": "single_turn"}
	for _, f := range e.Fields() {
		if want, asked := values[f.Name]; asked && (f.Value != want || f.Origin != envelope.FromRequest) {
			t.Errorf("%s = %s from %s, want %s", f.Name, f.Value, f.Origin, want)
		}
		delete(values, f.Name)
	}
	if len(values) > 0 {
		t.Errorf("not shown: %v", values)
	}
}

func TestAmountsThatRunOutAreCutUnlessStrict(t *testing.T) {
	r := envelope.Request{Budget: budget.Limits{budget.CPUMS: 60_001, budget.ToolCalls: 7}, Amounts: envelope.Ask{"timeout": 600_000}}
	e, bad := below(t, nil, r)
	if len(bad) > 0 || e.Budget[budget.CPUMS] != 60_000 || e.Origins["budget.cpu_ms"] != envelope.Clamped || e.Origins["budget.tool_calls"] != envelope.FromRequest ||
		e.Posture.TimeoutMS != 500_000 || e.Origins["timeout"] != envelope.Clamped {
		t.Errorf("%+v %+v %v", e.Budget, e.Origins, bad)
	}
	r.Strict = true
	_, bad = below(t, nil, r)
	if len(bad) != 1 || bad[0].Field != "budget.cpu_ms" || bad[0].Asked != "1m0.001s" || bad[0].Allowed != "at most 1m0s" || bad[0].Code != job.CodeNotSubset {
		t.Errorf("%+v", bad)
	}
	delete(r.Budget, budget.CPUMS)
	_, bad = below(t, nil, r)
	if len(bad) != 1 || bad[0].Field != "timeout" || bad[0].Allowed != "at most 8m20s" || bad[0].Code != job.CodeBudgetExhausted {
		t.Errorf("%+v", bad)
	}
}

func TestAParentWithoutTimeHasNoMoreChildren(t *testing.T) {
	parent := root(t, envelope.Request{})
	for _, left := range []int64{999, 0, -1, math.MinInt64} {
		_, bad := envelope.Narrow(envelope.Above{Parent: &parent, LeftMS: left}, envelope.Request{})
		if len(bad) != 1 || bad[0].Field != "timeout" || bad[0].Code != job.CodeBudgetExhausted {
			t.Errorf("%d ms left: %+v", left, bad)
		}
	}
	if e, bad := envelope.Narrow(envelope.Above{Parent: &parent, LeftMS: math.MaxInt64}, envelope.Request{}); len(bad) > 0 || e.Posture.TimeoutMS != parent.Posture.TimeoutMS {
		t.Errorf("%d, %+v", e.Posture.TimeoutMS, bad)
	}
}

func TestTheWallBudgetBindsTheTimeout(t *testing.T) {
	e := root(t, envelope.Request{Budget: budget.Limits{budget.WallMS: 30_000}})
	if e.Posture.TimeoutMS != 30_000 || e.Origins["timeout"] != envelope.Clamped {
		t.Errorf("%d from %s", e.Posture.TimeoutMS, e.Origins["timeout"])
	}
}

func TestNothingStandsWithoutWhatIsAbove(t *testing.T) {
	if _, bad := envelope.Narrow(envelope.Above{}, envelope.Request{}); len(bad) != 1 || bad[0].Code != job.CodeNotInRoster {
		t.Errorf("%+v", bad)
	}
	// An envelope of before bounds a job and grants it nothing more: no child.
	old := envelope.Envelope{}
	if err := json.Unmarshal([]byte(`{"profile":"default","posture":{"image_id":"sha256:1","runtime":"runc","timeout_ms":60000,"memory":1073741824},"origins":{}}`), &old); err != nil {
		t.Fatal(err)
	}
	_, bad := envelope.Narrow(envelope.Above{Parent: &old, LeftMS: 1e6}, envelope.Request{})
	var fields []string
	for _, v := range bad {
		fields = append(fields, v.Field)
	}
	if diff := cmp.Diff([]string{"profile", "depth"}, fields); diff != "" {
		t.Error(diff)
	}
	if old.Fields()[len(old.Fields())-1].Name != "home_exec" {
		t.Errorf("an old envelope shows %+v", old.Fields())
	}
	if n, limited := old.Budget.Of(budget.CPUMS); n != 0 || !limited || !old.Below(envelope.RiskLocalWrite) || envelope.TrustOf(old.Trust) != envelope.Untrusted {
		t.Error("a missing field is not the narrowest")
	}
}

func TestAProjectNarrowsBetweenProfileAndRequest(t *testing.T) {
	p := team()
	project := envelope.Request{Amounts: envelope.Ask{"memory": gib, "pids": 64}, MaxRisk: "install", ToolsDeny: []string{"sh"}, Budget: budget.Limits{budget.CPUMS: 1000}}
	e, bad := envelope.Narrow(envelope.Above{Profile: &p, Project: &project}, envelope.Request{Amounts: envelope.Ask{"pids": 32}, Budget: budget.Limits{budget.CPUMS: 5000}})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	if e.Origins["memory"] != envelope.FromProject || e.Origins["pids"] != envelope.FromRequest || e.Posture.Pids != 32 || e.MaxRisk != "install" ||
		!slices.Equal(e.Tools.Deny, []string{"rm", "sh"}) || e.Budget[budget.CPUMS] != 1000 || e.Origins["budget.cpu_ms"] != envelope.Clamped {
		t.Errorf("%+v", e)
	}
	_, bad = envelope.Narrow(envelope.Above{Profile: &p, Project: &project}, envelope.Request{Amounts: envelope.Ask{"memory": 2 * gib}, MaxRisk: "code_execution"})
	if len(bad) != 2 || bad[0].Field != "memory" || bad[0].Allowed != "64MiB to 1GiB" || bad[0].Why != "more than the project's file allows" || bad[1].Field != "max_risk" {
		t.Errorf("%+v", bad)
	}
	wide := envelope.Request{Amounts: envelope.Ask{"memory": 64 * gib}, Trust: "trusted", BudgetInherit: "operator"}
	if _, bad = envelope.Narrow(envelope.Above{Profile: &p, Project: &wide}, envelope.Request{}); len(bad) != 2 || bad[0].Field != "budget_inherit" || bad[1].Field != "memory" {
		t.Errorf("%+v", bad)
	}
}

// A tree of before the operator lowered [limits] makes no children beyond them.
func TestOperatorLimitsBindTheChildrenOfOldTrees(t *testing.T) {
	limits := team()
	limits.Limit.Memory = 700 * mib
	limits.Allows.Images, limits.Allows.Delegates, limits.Allows.Tools, limits.Allows.Budget = []string{"base"}, []string{"*"}, envelope.Tools{Allow: []string{"*"}}, budget.Limits{budget.CPUMS: 50}
	parent := root(t, envelope.Request{})
	above := envelope.Above{Parent: &parent, ParentID: parentID, LeftMS: 1e6, Limits: &limits}
	e, bad := envelope.Narrow(above, envelope.Request{})
	if len(bad) > 0 || e.Posture.Memory != 700*mib || e.Origins["memory"] != envelope.Clamped || e.Budget[budget.CPUMS] != 50 || e.Trust != envelope.Trusted {
		t.Errorf("%+v, %v", e, bad)
	}
	_, bad = envelope.Narrow(above, envelope.Request{Image: "tiny", Amounts: envelope.Ask{"memory": 800 * mib}})
	if len(bad) != 2 || bad[0].Field != "image" || bad[1].Why != "more than [limits] allows" {
		t.Errorf("%+v", bad)
	}
}

func BenchmarkNarrow(b *testing.B) {
	p, h := team(), helper()
	parent, _ := envelope.Narrow(envelope.Above{Profile: &p}, envelope.Request{WorkspacePath: "/srv"})
	r := envelope.Request{Amounts: envelope.Ask{"memory": 256 * mib, "timeout": 60_000}, Budget: budget.Limits{budget.CPUMS: 5000}}
	b.Run("root", func(b *testing.B) {
		for b.Loop() {
			envelope.Narrow(envelope.Above{Profile: &p}, r)
		}
	})
	b.Run("child", func(b *testing.B) {
		for b.Loop() {
			envelope.Narrow(envelope.Above{Parent: &parent, LeftMS: 1e6, Profile: &h, Limits: &p}, r)
		}
	})
}
