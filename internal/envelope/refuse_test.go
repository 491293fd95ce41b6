package envelope_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

type wider struct {
	r              envelope.Request
	asked, allowed string
	code           job.Code
}

// askWider is, for each field a request can name, a child that asks for more than its parent has.
func askWider() map[string]wider {
	narrow := job.CodeNotSubset
	w := map[string]wider{
		"image":          {envelope.Request{Image: "debian", ImageID: "sha256:ff"}, "debian", "base, tiny", narrow},
		"images":         {envelope.Request{Images: []string{"base", "debian"}}, "debian", "base, tiny", narrow},
		"runtime":        {envelope.Request{Runtime: "kata"}, "kata", "runsc, runc", job.CodeInvalid},
		"workspace.path": {envelope.Request{WorkspacePath: "/srv/ab"}, "/srv/ab", "/srv/a and what is in it", narrow},
		"workspace.mode": {envelope.Request{WorkspaceMode: "rw", Trust: "untrusted"}, "rw", "overlay", narrow},
		"workspace.git":  {envelope.Request{WorkspaceGit: "rw"}, "rw", "ro", narrow},
		"workspace.live": {envelope.Request{WorkspaceLive: new(true)}, "true", "false", narrow},
		"mounts":         {envelope.Request{Mounts: []job.Mount{{Source: "/data/in", Name: "a"}, {Source: "/data", Name: "b"}}}, "/data:b", "/data/in:in", narrow},
		"egress":         {envelope.Request{Egress: "report"}, "report", "none", narrow},
		"budget_inherit": {envelope.Request{BudgetInherit: "operator"}, "operator", "no word", job.CodeForbidden},
		"max_depth":      {envelope.Request{MaxDepth: new(int64(3))}, "3", "at most 2", narrow},
		"max_tree_jobs":  {envelope.Request{MaxTreeJobs: new(int64(65))}, "65", "at most 64", narrow},
		"max_tree_live":  {envelope.Request{MaxTreeLive: new(int64(9))}, "9", "at most 8", narrow},
		"delegates":      {envelope.Request{Delegates: []string{"leaf", "builder"}}, "builder", "helper, leaf", narrow},
		"retention":      {envelope.Request{RetentionMS: new(int64(3_600_001))}, "1h0m0.001s", "at most 1h0m0s", narrow},
		"env_inherit":    {envelope.Request{EnvInherit: []string{"TOKEN"}}, "TOKEN", "LANG", narrow},
		"secrets":        {envelope.Request{Secrets: []string{"token", "key"}}, "key", "token", narrow},
		"trust":          {envelope.Request{Trust: "trusted"}, "trusted", "untrusted", narrow},
		"max_risk":       {envelope.Request{MaxRisk: "system_write"}, "system_write", "code_execution", narrow},
		"tools.allow":    {envelope.Request{ToolsAllow: []string{"*"}}, "all", "read, write", narrow},
		"mode":           {envelope.Request{Mode: "multi_turn"}, "multi_turn", "single_turn", job.CodeInvalid},
		"lease":          {envelope.Request{Lease: new(false)}, "false", "true", narrow},
	}
	for name, v := range map[string][2]string{"cpus": {"1.001", "0.01 to 1"}, "memory": {"1048577KiB", "64MiB to 1GiB"}, "pids": {"513", "1 to 512"}, "nofile": {"1025", "16 to 1024"},
		"tmp_bytes": {"131073KiB", "64KiB to 128MiB"}, "home_bytes": {"524289KiB", "64KiB to 512MiB"}, "out_bytes": {"65537KiB", "64KiB to 64MiB"},
		"output_keep": {"524289KiB", "64KiB to 512MiB"}, "timeout": {"10m0.001s", "1s to 10m0s"}} {
		n, _ := plain().Default.Amount(name)
		more := int64(1)
		if strings.HasSuffix(v[0], "KiB") {
			more = kib
		}
		w[name] = wider{envelope.Request{Amounts: envelope.Ask{name: n + more}}, v[0], v[1], narrow}
	}
	for _, d := range budget.Dims() {
		w[d.Field()] = wider{envelope.Request{Budget: budget.Limits{d: 70_001}, Strict: true}, d.Show(70_001), "at most " + d.Show(70_000), narrow}
	}
	return w
}

// unasked are the fields no request can name.
var unasked = map[string]string{
	"profile": "named by Above.Profile; see the tests of rosters", "depth": "follows from who asks; see the tests of rosters",
	"inodes": "the daemon's", "home_exec": "the profile's", "shm": "the profile's", "disk_bytes": "no disk is served yet; admission refuses it by name",
	"tools.deny": "what is asked is added; nothing can be taken away",
}

func TestAChildThatAsksForMoreIsRefusedInEveryField(t *testing.T) {
	parent := root(t, envelope.Request{Image: "base", ImageID: "sha256:0a", WorkspacePath: "/srv/a", WorkspaceMode: "rw", Mounts: []job.Mount{{Source: "/data/in", Name: "in"}}, Lease: new(true)})
	parent.Budget = budget.Limits{}
	for _, d := range budget.Dims() {
		parent.Budget[d] = 70_000
	}
	cases := askWider()
	for _, name := range envelope.FieldNames() {
		c, ok := cases[name]
		if !ok {
			if unasked[name] == "" {
				t.Errorf("%s is not tried", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := parent
			if name == "trust" {
				p.Trust, p.Workspace.Mode = envelope.Untrusted, job.WorkspaceRO
			}
			e, bad := envelope.Narrow(envelope.Above{Parent: &p, ParentID: parentID, LeftMS: 600_000}, c.r)
			if len(bad) != 1 || !cmp.Equal(e, envelope.Envelope{}) {
				t.Fatalf("%+v beside %+v", bad, e.Profile)
			}
			v := bad[0]
			if v.Field != name || v.Asked != c.asked || v.Allowed != c.allowed || v.Why == "" || v.Code != c.code {
				t.Errorf("%+v, want %s asked, %s allowed, %s", v, c.asked, c.allowed, c.code)
			}
			d := envelope.Denial(bad)
			if d.Code != c.code || d.Field != envelope.RequestName(name) || !strings.Contains(d.Message, c.asked) || !strings.Contains(d.Message, c.allowed) || d.Hint == "" {
				t.Errorf("%+v", d)
			}
		})
		delete(cases, name)
	}
	if len(cases) > 0 {
		t.Errorf("no such fields: %v", slices.Sorted(maps.Keys(cases)))
	}
}

func TestEveryViolationOfARequestIsNamed(t *testing.T) {
	r := envelope.Request{
		Image: "debian", Images: []string{"debian"}, Runtime: "kata", Amounts: envelope.Ask{"memory": 64 * gib, "cpus": 0, "pids": -1, "gpus": 1}, WorkspacePath: "srv", WorkspaceMode: "RW",
		WorkspaceGit: "RO", Mounts: []job.Mount{{Source: "../x", Name: "x"}}, Egress: "enforce", Budget: budget.Limits{budget.CPUMS: -5, budget.ToolCalls: 0, "gpu_ms": 1}, BudgetInherit: "share",
		MaxDepth: new(int64(0)), MaxTreeJobs: new(int64(-1)), MaxTreeLive: new(int64(math.MaxInt64)), Delegates: []string{"a", "a"}, RetentionMS: new(int64(0)),
		EnvInherit: []string{"A=B", "sandboxd_TOKEN"}, Secrets: []string{""}, MaxRisk: "Safe", ToolsAllow: []string{"a\x00"}, ToolsDeny: []string{strings.Repeat("x", 256)}, Mode: "SINGLE_TURN",
	}
	_, bad := below(t, nil, r)
	count := map[string]int{}
	for _, v := range bad {
		count[v.Field]++
		if v.Allowed == "" || v.Why == "" || len(v.Asked) > 100 || strings.ContainsAny(v.Asked, "\x00\n") {
			t.Errorf("%+v", v)
		}
	}
	want := map[string]int{"image": 1, "images": 1, "runtime": 1, "memory": 1, "cpus": 1, "pids": 1, "gpus": 1, "workspace.path": 2, "workspace.mode": 1, "workspace.git": 1, "mounts": 2, "egress": 1,
		"budget.cpu_ms": 1, "budget.tool_calls": 1, `budget."gpu_ms"`: 1, "budget_inherit": 1, "max_depth": 1, "max_tree_jobs": 1, "max_tree_live": 1, "delegates": 1, "retention": 1,
		"env_inherit": 2, "secrets": 1, "max_risk": 1, "tools.allow": 1, "tools.deny": 1, "mode": 1}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Error(diff)
	}
	if d := envelope.Denial(bad); d.Code != job.CodeInvalid || len(d.Violations) != len(bad) || len(d.Error()) > 200 {
		t.Errorf("%+v", d)
	}
}

func TestLongListsAreBounded(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprint("name", i))
	}
	_, bad := below(t, nil, envelope.Request{Delegates: many})
	if len(bad) != 1 || bad[0].Asked != "300 names" || bad[0].Allowed != "at most 256" || bad[0].Code != job.CodeInvalid {
		t.Errorf("%+v", bad)
	}
	_, bad = below(t, nil, envelope.Request{Delegates: many[:200]})
	if len(bad) != 1 || len(bad[0].Asked) > 200 || !strings.HasSuffix(bad[0].Asked, " and 184 more") {
		t.Errorf("%+v", bad)
	}
	_, bad = below(t, nil, envelope.Request{Secrets: []string{"*"}})
	if len(bad) != 1 || bad[0].Why != "name each one" {
		t.Errorf("%+v", bad)
	}
}

func TestRostersAndDepthBind(t *testing.T) {
	p, h, leaf := team(), helper(), helper()
	leaf.Name = "leaf"
	parent := root(t, envelope.Request{})
	for _, c := range []struct {
		name    string
		parent  func(*envelope.Envelope)
		profile *envelope.Profile
		bad     []string
		code    job.Code
	}{
		{"one of the roster", nil, &h, nil, ""},
		{"none named", nil, nil, nil, ""},
		{"its own", nil, &p, nil, ""},
		{"not of the roster", func(e *envelope.Envelope) { e.Delegates = []string{"leaf"} }, &h, []string{"profile"}, job.CodeNotInRoster},
		{"no roster", func(e *envelope.Envelope) { e.Delegates = nil }, &h, []string{"profile"}, job.CodeNotInRoster},
		{"no roster and none named", func(e *envelope.Envelope) { e.Delegates = []string{} }, nil, []string{"profile"}, job.CodeNotInRoster},
		{"at the depth", func(e *envelope.Envelope) { e.Depth = 1 }, &h, nil, ""},
		{"too deep", func(e *envelope.Envelope) { e.Depth = 2 }, &h, []string{"depth"}, job.CodeDepthLimit},
		{"too deep and not of the roster", func(e *envelope.Envelope) { e.Depth, e.Delegates = 2, []string{"leaf"} }, &h, []string{"profile", "depth"}, job.CodeNotSubset},
		{"deeper than any number", func(e *envelope.Envelope) { e.Depth, e.MaxDepth = math.MaxInt64, math.MaxInt64 }, &h, []string{"depth"}, job.CodeDepthLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := parent
			if c.parent != nil {
				c.parent(&e)
			}
			child, bad := envelope.Narrow(envelope.Above{Parent: &e, LeftMS: 1e6, Profile: c.profile}, envelope.Request{})
			var fields []string
			for _, v := range bad {
				fields = append(fields, v.Field)
			}
			if diff := cmp.Diff(c.bad, fields); diff != "" {
				t.Fatal(diff)
			}
			if d := envelope.Denial(bad); c.code != "" && d.Code != c.code {
				t.Errorf("%+v", d)
			}
			if len(bad) == 0 && child.Depth != e.Depth+1 {
				t.Errorf("depth %d below %d", child.Depth, e.Depth)
			}
		})
	}
	if e, bad := envelope.Narrow(envelope.Above{Parent: &parent, LeftMS: 1e6, Profile: &h}, envelope.Request{}); len(bad) > 0 || !slices.Equal(e.Delegates, []string{"leaf"}) {
		t.Errorf("a child may delegate to %v, %v", e.Delegates, bad)
	}
}

func TestNoViolationIsNoDenial(t *testing.T) {
	if d := envelope.Denial(nil); d != nil {
		t.Error(d)
	}
	var err error = envelope.Denial([]envelope.Violation{{Violation: job.Violation{Field: "memory", Asked: "1", Allowed: "2", Why: "3"}, Code: job.CodeNotSubset}})
	var e *job.Error
	if !errors.As(err, &e) || e.Field != "limits.memory" || e.Message != "asked 1, allowed is 2 (3)" {
		t.Error(err)
	}
}
