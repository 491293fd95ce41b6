package envelope_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// Every field of an envelope has its order: what no line of the table orders would bind nothing.
func TestEveryFieldHasARegisteredOrder(t *testing.T) {
	ordered := map[string]int{}
	for _, l := range envelope.Lines() {
		for _, path := range strings.Split(l.Path, ", ") {
			ordered[path]++
		}
	}
	exempt := map[string]string{"Origins": "says where values came from; bounds nothing"}
	leaves := leafPaths(reflect.TypeFor[envelope.Envelope](), "")
	for _, path := range leaves {
		switch {
		case exempt[path] != "":
		case ordered[path] == 0:
			t.Errorf("%s has no order: add a line to the table of fields", path)
		case ordered[path] > 1 && path != "Budget":
			t.Errorf("%s has %d orders", path, ordered[path])
		}
		delete(ordered, path)
	}
	for path := range ordered {
		t.Errorf("the table orders %s, which an envelope does not have", path)
	}
	if names := envelope.FieldNames(); len(names) < 40 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("%d names: %v", len(names), names)
	}
}

func leafPaths(t reflect.Type, prefix string) (out []string) {
	for f := range t.Fields() {
		path := prefix + f.Name
		switch {
		case f.Anonymous:
			out = append(out, leafPaths(f.Type, prefix)...)
		case f.Type.Kind() == reflect.Struct:
			out = append(out, leafPaths(f.Type, path+".")...)
		default:
			out = append(out, path)
		}
	}
	return out
}

// widenings is one widening for every line of the table; nil where the field can hold nothing wider.
func widenings() map[string]func(*envelope.Envelope) {
	w := map[string]func(*envelope.Envelope){
		"image":          func(e *envelope.Envelope) { e.Image, e.Posture.ImageID = "foreign", "sha256:ff" },
		"runtime":        func(e *envelope.Envelope) { e.Posture.Runtime = "kata" },
		"inodes":         func(e *envelope.Envelope) { e.Posture.Inodes++ },
		"home_exec":      func(e *envelope.Envelope) { e.Posture.HomeExec = true },
		"disk_bytes":     func(e *envelope.Envelope) { e.Posture.DiskBytes++ },
		"shm":            func(e *envelope.Envelope) { e.Posture.Shm = true },
		"images":         func(e *envelope.Envelope) { e.Images = append(slices.Clone(e.Images), "foreign") },
		"workspace.path": func(e *envelope.Envelope) { e.Workspace.Path = "/elsewhere" },
		"workspace.mode": func(e *envelope.Envelope) { e.Workspace.Mode = job.WorkspaceRW },
		"workspace.git":  func(e *envelope.Envelope) { e.Workspace.Git = "rw" },
		"workspace.live": func(e *envelope.Envelope) { e.Workspace.Live = true },
		"mounts": func(e *envelope.Envelope) {
			e.Mounts = append(slices.Clone(e.Mounts), job.Mount{Source: "/elsewhere", Name: "x"})
		},
		"egress":         func(e *envelope.Envelope) { e.Egress = "report" },
		"budget_inherit": func(e *envelope.Envelope) { e.BudgetInherit = "operator" },
		"profile":        func(e *envelope.Envelope) { e.Profile = "foreign" },
		"depth":          func(e *envelope.Envelope) { e.Depth = max(e.MaxDepth, e.Depth) + 1 },
		"max_depth":      func(e *envelope.Envelope) { e.MaxDepth++ },
		"max_tree_jobs":  func(e *envelope.Envelope) { e.MaxTreeJobs++ },
		"max_tree_live":  func(e *envelope.Envelope) { e.MaxTreeLive++ },
		"delegates":      func(e *envelope.Envelope) { e.Delegates = append(slices.Clone(e.Delegates), "foreign") },
		"lease":          func(e *envelope.Envelope) { e.Detached = true },
		"retention":      func(e *envelope.Envelope) { e.RetentionMS++ },
		"env_inherit":    func(e *envelope.Envelope) { e.EnvInherit = append(slices.Clone(e.EnvInherit), "FOREIGN") },
		"secrets":        func(e *envelope.Envelope) { e.Secrets = append(slices.Clone(e.Secrets), "foreign") },
		"trust":          func(e *envelope.Envelope) { e.Trust = envelope.Trusted },
		"max_risk":       func(e *envelope.Envelope) { e.MaxRisk = "blocked" },
		"tools.allow":    func(e *envelope.Envelope) { e.Tools.Allow = append(slices.Clone(e.Tools.Allow), "*") },
		"tools.deny":     func(e *envelope.Envelope) { e.Tools.Deny = nil },
		"mode":           func(e *envelope.Envelope) { e.Mode = "chat" },
	}
	for _, name := range envelope.AmountNames() {
		w[name] = func(e *envelope.Envelope) {
			v, _ := e.Posture.Amount(name)
			set(&e.Posture, name, v+1)
		}
	}
	for _, d := range budget.Dims() {
		w[d.Field()] = func(e *envelope.Envelope) {
			wider := budget.Limits{}
			for other, n := range e.Budget {
				if other != d {
					wider[other] = n
				}
			}
			e.Budget = wider
		}
	}
	return w
}

func TestEveryLineHasAWidening(t *testing.T) {
	w := widenings()
	for _, name := range envelope.FieldNames() {
		if w[name] == nil {
			t.Errorf("%s is not tried", name)
		}
		delete(w, name)
	}
	for name := range w {
		t.Errorf("%s is no field", name)
	}
}

// Any single widening of any envelope is refused, and it alone is named.
func TestAnySingleWideningIsNamed(t *testing.T) {
	w := widenings()
	tried := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		parent := anEnvelope(t, "parent")
		// Leave room above in every field.
		parent.Tools = envelope.Tools{Allow: subset(t, "allowed", someNames), Deny: []string{"denied"}}
		parent.Workspace.Mode, parent.Workspace.Git, parent.Workspace.Live = job.WorkspaceRO, "ro", false
		parent.Posture.HomeExec, parent.Posture.Shm, parent.Detached = false, false, false
		parent.Trust, parent.MaxRisk, parent.BudgetInherit = envelope.Untrusted, pick(t, "risk", envelope.Risks()[:10]), envelope.BudgetShare
		parent.Workspace.Path = "/srv/a"
		parent.Mounts = slices.DeleteFunc(parent.Mounts, func(m job.Mount) bool { return m.Source == "/" })
		for _, d := range budget.Dims() {
			parent.Budget[d] = rapid.Int64Range(1, 9).Draw(t, "limit of "+string(d))
		}
		for _, name := range envelope.FieldNames() {
			child := parent
			w[name](&child)
			bad := envelope.Subset(child, parent)
			if len(bad) != 1 || bad[0].Field != name || bad[0].Asked == "" || bad[0].Allowed == "" || bad[0].Why == "" {
				t.Fatalf("%s: %+v", name, bad)
			}
			tried[name]++
		}
	})
	if len(tried) != len(envelope.FieldNames()) {
		t.Errorf("%d fields tried", len(tried))
	}
}
