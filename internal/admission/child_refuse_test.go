package admission_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/admission"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// denied is a child that must be refused: by which code, for which field, in words that hold all of these.
type denied struct {
	name  string
	spoil func(*admission.Request)
	code  job.Code
	field string
	says  []string
}

func deny(t *testing.T, parent *admission.Parent, cases []denied) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, err := checkChild(within(newWorld()), parent, helping(c.spoil))
			var e *job.Error
			if !errors.As(err, &e) {
				t.Fatalf("%+v, %v", a.Envelope, err)
			}
			if e.Code != c.code || e.Field != c.field || e.Hint == "" || a.Frozen != nil {
				t.Errorf("%s for %q: %s (%s)", e.Code, e.Field, e.Message, e.Hint)
			}
			for _, word := range c.says {
				if !strings.Contains(e.Message, word) {
					t.Errorf("%q lacks %q", e.Message, word)
				}
			}
		})
	}
}

func TestAChildThatAsksMoreIsRefused(t *testing.T) {
	parent := newParent(t, func(r *admission.Request) {
		r.Limits = admission.Limits{Memory: p[int64](512 * mib), Nofile: p[int64](512), TmpBytes: p[int64](mib), HomeBytes: p[int64](mib), OutBytes: p[int64](mib)}
		r.TimeoutMS, r.MaxDepth, r.MaxTreeJobs, r.MaxTreeLive = p[int64](60_000), p[int64](1), p[int64](9), p[int64](4)
		r.Trust, r.MaxRisk, r.Tools = "untrusted", "safe", admission.Tools{Allow: []string{"read"}, Deny: []string{"shell"}}
		r.EnvInherit, r.Secrets, r.Delegates = []string{"LANG"}, []string{}, []string{"helper"}
	})
	var cases []denied
	add := func(field, asked, allowed string, spoil func(*admission.Request)) {
		cases = append(cases, denied{field, spoil, job.CodeNotSubset, field, []string{"asked " + asked, allowed}})
	}
	add("limits.cpus", "2", "to 1 ", func(r *admission.Request) { r.Limits.MilliCPUs = p[int64](2000) })
	add("limits.memory", "1GiB", "to 512MiB", func(r *admission.Request) { r.Limits.Memory = p[int64](gib) })
	add("limits.pids", "513", "to 512", func(r *admission.Request) { r.Limits.Pids = p[int64](513) })
	add("limits.nofile", "513", "to 512", func(r *admission.Request) { r.Limits.Nofile = p[int64](513) })
	add("limits.tmp_bytes", "2MiB", "to 1MiB", func(r *admission.Request) { r.Limits.TmpBytes = p[int64](2 * mib) })
	add("limits.home_bytes", "2MiB", "to 1MiB", func(r *admission.Request) { r.Limits.HomeBytes = p[int64](2 * mib) })
	add("limits.out_bytes", "2MiB", "to 1MiB", func(r *admission.Request) { r.Limits.OutBytes = p[int64](2 * mib) })
	add("limits.output_keep", "1GiB", "to 512MiB", func(r *admission.Request) { r.Limits.OutputKeep = p[int64](gib) })
	add("timeout", "2m0s", "to 1m0s", func(r *admission.Request) { r.TimeoutMS = p[int64](120_000) })
	add("image", "alpine", "sandboxd/base", image("alpine"))
	add("workspace.mode", "rw", "ro", workspace("/workspace", "rw"))
	add("workspace.mode", "overlay", "ro", workspace("/workspace", "overlay"))
	add("workspace.path", "/resolved/data", "/resolved/src", workspace("/mnt/data", ""))
	add("mounts", "/resolved/src", "/resolved/data", mounts(job.Mount{Source: "/workspace", Name: "x"}))
	add("egress.mode", "report", "none", func(r *admission.Request) { r.Egress = &admission.Egress{Mode: "report"} })
	add("max_depth", "2", "at most 1", func(r *admission.Request) { r.MaxDepth = p[int64](2) })
	add("max_tree_jobs", "10", "at most 9", func(r *admission.Request) { r.MaxTreeJobs = p[int64](10) })
	add("max_tree_live", "5", "at most 4", func(r *admission.Request) { r.MaxTreeLive = p[int64](5) })
	add("delegates", "default", "helper", func(r *admission.Request) { r.Delegates = []string{"default"} })
	add("env_inherit", "TZ", "LANG", func(r *admission.Request) { r.EnvInherit = []string{"LANG", "TZ"} })
	add("secrets", "token", "none", func(r *admission.Request) { r.Secrets = []string{"token"} })
	add("trust", "trusted", "untrusted", func(r *admission.Request) { r.Trust = "trusted" })
	add("max_risk", "install", "safe", func(r *admission.Request) { r.MaxRisk = "install" })
	add("tools.allow", "write", "read", func(r *admission.Request) { r.Tools.Allow = []string{"read", "write"} })
	cases = append(cases,
		denied{"strict budget", func(r *admission.Request) { r.Budget = admission.Budget{CPUMS: p[int64](60_001), Strict: true} }, job.CodeNotSubset, "budget.cpu", []string{"asked 1m0.001s", "at most 1m0s"}},
		denied{"budget_inherit", func(r *admission.Request) { r.Budget.Inherit = "operator" }, job.CodeForbidden, "budget.inherit", []string{"asked operator", "only the operator"}},
		denied{"mode", func(r *admission.Request) { r.Mode = "multi_turn" }, job.CodeInvalid, "mode", []string{"multi_turn", "single_turn"}},
		denied{"risk", func(r *admission.Request) { r.MaxRisk = "Safe" }, job.CodeInvalid, "max_risk", []string{"Safe", "local_write"}},
		denied{"disk", func(r *admission.Request) { r.Limits.DiskBytes = p[int64](1) }, job.CodeInvalid, "limits.disk_bytes", []string{"leave it out"}},
		denied{"disk of a project", func(r *admission.Request) {
			r.Project = &admission.Project{Limits: admission.Limits{DiskBytes: p[int64](1)}}
		}, job.CodeInvalid, "limits.disk_bytes", []string{"leave it out"}},
		denied{"a project's", func(r *admission.Request) {
			r.Project = &admission.Project{Limits: admission.Limits{Memory: p[int64](gib)}}
		}, job.CodeNotSubset, "limits.memory", []string{"1GiB", "512MiB"}},
	)
	deny(t, parent, cases)
}

func TestNoneOfAChildsAmountsIsUnlimited(t *testing.T) {
	set := maps.Clone(amountFields)
	set["max_depth"] = func(r *admission.Request, v int64) { r.MaxDepth = &v }
	set["max_tree_jobs"] = func(r *admission.Request, v int64) { r.MaxTreeJobs = &v }
	set["max_tree_live"] = func(r *admission.Request, v int64) { r.MaxTreeLive = &v }
	set["budget.wall"] = func(r *admission.Request, v int64) { r.Budget.WallMS = &v }
	set["budget.cpu"] = func(r *admission.Request, v int64) { r.Budget.CPUMS = &v }
	set["budget.egress_bytes"] = func(r *admission.Request, v int64) { r.Budget.EgressBytes = &v }
	set["budget.output_bytes"] = func(r *admission.Request, v int64) { r.Budget.OutputBytes = &v }
	set["budget.artifact_bytes"] = func(r *admission.Request, v int64) { r.Budget.ArtifactBytes = &v }
	set["budget.input_tokens"] = func(r *admission.Request, v int64) { r.Budget.InputTokens = &v }
	set["budget.output_tokens"] = func(r *admission.Request, v int64) { r.Budget.OutputTokens = &v }
	set["budget.tool_calls"] = func(r *admission.Request, v int64) { r.Budget.ToolCalls = &v }
	set["budget.cost_micro_usd"] = func(r *admission.Request, v int64) { r.Budget.CostMicroUSD = &v }
	var cases []denied
	for _, field := range slices.Sorted(maps.Keys(set)) {
		for _, v := range []int64{0, -1} {
			cases = append(cases, denied{field, func(r *admission.Request) { set[field](r, v) }, job.CodeInvalid, field, []string{"at least"}})
		}
	}
	for _, c := range cases {
		_, err := checkChild(within(newWorld()), newParent(t), helping(c.spoil))
		var e *job.Error
		if !errors.As(err, &e) || e.Code != job.CodeInvalid || e.Field != c.field {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

func TestAllThatAChildAsksTooMuchStandsInOneRefusal(t *testing.T) {
	w := within(newWorld())
	_, err := checkChild(w, newParent(t), helping(image("alpine"), workspace("/mnt/data", "rw"), func(r *admission.Request) {
		r.Limits.Memory, r.MaxTreeLive, r.Egress = p[int64](2*gib), p[int64](9), &admission.Egress{Mode: "report"}
	}))
	var e *job.Error
	if !errors.As(err, &e) || e.Code != job.CodeNotSubset || len(w.asked) > 0 {
		t.Fatalf("%v after asking %v", err, w.asked)
	}
	var fields []string
	for _, v := range e.Violations {
		fields = append(fields, v.Field)
	}
	slices.Sort(fields)
	if want := []string{"egress.mode", "image", "limits.memory", "max_tree_live", "workspace.mode", "workspace.path"}; !slices.Equal(fields, want) {
		t.Errorf("%v, want %v", fields, want)
	}
}

func TestRostersHold(t *testing.T) {
	named := func(name string) func(*admission.Request) {
		return func(r *admission.Request) { r.Profile = name }
	}
	parent := newParent(t)
	deny(t, parent, []denied{
		{"none, and its parent's own is not in it", named(""), job.CodeNotInRoster, "profile", []string{"asked none", "small, helper", "default"}},
		{"its parent's own by name", named("default"), job.CodeNotInRoster, "profile", []string{"asked \"default\"", "small, helper"}},
		{"one that nobody made", named("root"), job.CodeNotInRoster, "profile", []string{"small, helper"}},
		{"another case", named("Helper"), job.CodeNotInRoster, "profile", []string{"small, helper"}},
		{"controls", named("\x1b\n" + strings.Repeat("x", 1e6)), job.CodeNotInRoster, "profile", []string{"small, helper"}},
		{"all", named("*"), job.CodeNotInRoster, "profile", []string{"small, helper"}},
		{"a role", func(r *admission.Request) { r.Role = "admin" }, job.CodeForbidden, "role", []string{"not a job"}},
		{"skills", func(r *admission.Request) { r.Skills = []string{"x"} }, job.CodeForbidden, "role", []string{"not a job"}},
	})
	parent.Envelope.Delegates = []string{"default", "retired"}
	if a, err := checkChild(within(newWorld()), parent, plain()); err != nil || a.Spec.Profile != "default" || a.Envelope.Profile != "default" {
		t.Errorf("an own profile in the roster is inherited: %v", err)
	}
	deny(t, parent, []denied{{"one that is no more", named("retired"), job.CodeNotInRoster, "profile", []string{"there is no profile", "helper"}}})
	parent.Envelope.Delegates = nil
	deny(t, parent, []denied{{"no roster", named("helper"), job.CodeNotInRoster, "profile", []string{"allowed is none", "may not delegate"}}})
}

func TestDepthHolds(t *testing.T) {
	parent := newParent(t)
	parent.Envelope.Depth = 2
	deny(t, parent, []denied{{"deeper", func(*admission.Request) {}, job.CodeDepthLimit, "depth", []string{"asked 3", "at most 2"}}})
}

func TestAnEnvelopeFromBeforeThereWereBoundsDelegatesNothing(t *testing.T) {
	parent := newParent(t)
	parent.Envelope.Bounds = envelope.Bounds{}
	deny(t, parent, []denied{{"old", func(*admission.Request) {}, job.CodeNotInRoster, "profile", []string{"may not delegate"}}})
}
