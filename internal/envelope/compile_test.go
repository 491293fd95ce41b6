package envelope_test

import (
	"strings"
	"testing"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

func TestOnlyTheExactWordIsTrusted(t *testing.T) {
	for _, word := range []string{"Trusted", " trusted", "trusted ", "TRUSTED", "trusted\n", "tru\u200bsted", "trustеd", "yes", "true", "1", "untrusted", "*", "\x00"} {
		if e := root(t, envelope.Request{Trust: word}); e.Trust != envelope.Untrusted || e.Origins["trust"] != envelope.FromRequest {
			t.Errorf("%q is %s from %s", word, e.Trust, e.Origins["trust"])
		}
		if envelope.TrustOf(word) != envelope.Untrusted {
			t.Errorf("%q is trusted", word)
		}
		// A stored word binds alike.
		stored, parent := envelope.Envelope{}, envelope.Envelope{}
		stored.Trust, parent.Trust = envelope.Trusted, word
		if bad := envelope.Subset(stored, parent); len(bad) != 1 || bad[0].Field != "trust" {
			t.Errorf("trusted is within %q: %+v", word, bad)
		}
	}
	if e := root(t, envelope.Request{Trust: "trusted"}); e.Trust != envelope.Trusted {
		t.Error("trusted is not")
	}
}

func TestUnknownWordsAreRefused(t *testing.T) {
	p := team()
	for field, list := range map[string][]string{
		"max_risk":       {"Safe", "safe ", "low", "9", "network-egress", "\x00", strings.Repeat("safe", 1000)},
		"mode":           {"multi_turn", "Single_turn", "single_turn ", "chat"},
		"workspace.mode": {"RW", "rw ", "readonly", "w"},
		"workspace.git":  {"RW", "yes"},
		"runtime":        {"runC", "kata", "crun", "io.containerd.runc.v2"},
		"egress":         {"report", "enforce", "None", "all", "off"},
		"budget_inherit": {"share", "operator", "Share", "none"},
	} {
		for _, word := range list {
			r := envelope.Request{}
			*map[string]*string{"max_risk": &r.MaxRisk, "mode": &r.Mode, "workspace.mode": &r.WorkspaceMode, "workspace.git": &r.WorkspaceGit,
				"runtime": &r.Runtime, "egress": &r.Egress, "budget_inherit": &r.BudgetInherit}[field] = word
			_, bad := envelope.Narrow(envelope.Above{Profile: &p}, r)
			if len(bad) != 1 || bad[0].Field != field || bad[0].Asked == "" || len(bad[0].Asked) > 80 || bad[0].Code == "" {
				t.Errorf("%s = %.20q: %+v", field, word, bad)
			}
		}
	}
}

func TestRiskAndTrustBindTheWorkspace(t *testing.T) {
	for _, c := range []struct {
		name  string
		r     envelope.Request
		mode  job.WorkspaceMode // unasked
		asked []string          // modes that are refused when they are asked
	}{
		{"trusted, all risk", envelope.Request{}, "rw", nil},
		{"local_write", envelope.Request{MaxRisk: "local_write"}, "rw", nil},
		{"safe", envelope.Request{MaxRisk: "safe"}, "ro", []string{"overlay", "rw"}},
		{"untrusted", envelope.Request{Trust: "untrusted"}, "overlay", []string{"rw"}},
		{"untrusted and safe", envelope.Request{Trust: "untrusted", MaxRisk: "safe"}, "ro", []string{"overlay", "rw"}},
		{"runsc", envelope.Request{Runtime: "runsc"}, "overlay", []string{"rw"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := team()
			p.WorkspaceMode, p.Allows.Workspace.Git, p.Allows.Workspace.Live = job.WorkspaceRW, "rw", true
			r := c.r
			r.WorkspacePath = "/srv/a"
			e, bad := envelope.Narrow(envelope.Above{Profile: &p}, r)
			if len(bad) > 0 || e.Workspace.Mode != c.mode || (e.Workspace.Git == "rw") != (c.mode == job.WorkspaceRW) {
				t.Fatalf("%+v, %+v", e.Workspace, bad)
			}
			if cut := e.Origins["workspace.mode"] == envelope.Clamped; cut != (c.mode != job.WorkspaceRW) {
				t.Errorf("from %s", e.Origins["workspace.mode"])
			}
			for _, mode := range envelope.WorkspaceModes() {
				r.WorkspaceMode = mode
				_, bad := envelope.Narrow(envelope.Above{Profile: &p}, r)
				refused := strings.Contains(strings.Join(c.asked, " ")+" ", mode+" ")
				if refused != (len(bad) == 1) || refused && (bad[0].Field != "workspace.mode" || bad[0].Asked != mode || bad[0].Allowed != string(c.mode)) {
					t.Errorf("%s: %+v", mode, bad)
				}
			}
		})
	}
}

func TestUntrustedJobsGetNoLiveWorkspace(t *testing.T) {
	p := team()
	p.Allows.Workspace.Live = true
	r := envelope.Request{WorkspacePath: "/srv/a", WorkspaceLive: new(true)}
	if e, bad := envelope.Narrow(envelope.Above{Profile: &p}, r); len(bad) > 0 || !e.Workspace.Live {
		t.Errorf("%+v, %+v", e.Workspace, bad)
	}
	r.Trust = "untrusted"
	if _, bad := envelope.Narrow(envelope.Above{Profile: &p}, r); len(bad) != 1 || bad[0].Field != "workspace.live" {
		t.Errorf("%+v", bad)
	}
}

func TestRisksAreOrdered(t *testing.T) {
	risks := envelope.Risks()
	want := "safe local_write install network_egress network_upload code_execution system_write persistence unknown destructive blocked"
	if strings.Join(risks, " ") != want {
		t.Errorf("%v", risks)
	}
	for i, a := range risks {
		for j, b := range risks {
			if got := (envelope.Bounds{MaxRisk: a}).Below(b); got != (i < j) {
				t.Errorf("%s below %s: %v", a, b, got)
			}
		}
	}
	if !(envelope.Bounds{MaxRisk: "nonsense"}).Below("local_write") {
		t.Error("an unknown word is not the lowest")
	}
}

func TestImagesOfAChild(t *testing.T) {
	h := helper()
	for _, c := range []struct {
		name       string
		parent     envelope.Request
		profile    func(*envelope.Profile)
		r          envelope.Request
		image, id  string
		origin     envelope.Origin
		fields     string
		noProfile  bool
		parentTidy func(*envelope.Envelope)
	}{
		{name: "inherits name and digest", noProfile: true, image: "base", id: "sha256:0a", origin: envelope.FromParent(parentID)},
		{name: "its parent's by name keeps the digest, wherever the tag went", noProfile: true, r: envelope.Request{Image: "base:latest", ImageID: "sha256:moved"}, image: "base:latest", id: "sha256:0a", origin: "request"},
		{name: "its parent's by digest", noProfile: true, r: envelope.Request{Image: "sha256:0a"}, image: "sha256:0a", id: "sha256:0a", origin: "request"},
		{name: "another name of the same digest", noProfile: true, r: envelope.Request{Image: "alias", ImageID: "sha256:0a"}, image: "alias", id: "sha256:0a", origin: "request"},
		{name: "one of the parent's images", noProfile: true, r: envelope.Request{Image: "tiny:latest", ImageID: "sha256:0b"}, image: "tiny:latest", id: "sha256:0b", origin: "request"},
		{name: "another tag", noProfile: true, r: envelope.Request{Image: "tiny:v2", ImageID: "sha256:0c"}, fields: "image"},
		{name: "the profile has it too", image: "base", id: "sha256:0a", origin: envelope.FromParent(parentID)},
		{name: "the profile has another that the parent has", profile: func(p *envelope.Profile) { p.Allows.Image, p.Allows.Images = "tiny", []string{"tiny"} }, image: "tiny", id: "", origin: "profile:helper"},
		{name: "nothing in common", profile: func(p *envelope.Profile) { p.Allows.Image, p.Allows.Images = "debian", []string{"debian"} }, fields: "image"},
		{name: "the parent's own is not the profile's", profile: func(p *envelope.Profile) { p.Allows.Image, p.Allows.Images = "tiny", []string{"tiny"} }, r: envelope.Request{Image: "base"}, fields: "image"},
		{name: "a parent admitted without an engine", noProfile: true, parentTidy: func(e *envelope.Envelope) { e.Posture.ImageID = "" }, r: envelope.Request{Image: "base"}, image: "base", id: "", origin: "request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := root(t, envelope.Request{Image: "base", ImageID: "sha256:0a"})
			if c.parentTidy != nil {
				c.parentTidy(&parent)
			}
			p := h
			if c.profile != nil {
				c.profile(&p)
			}
			above := envelope.Above{Parent: &parent, ParentID: parentID, LeftMS: 1e6, Profile: &p}
			if c.noProfile {
				above.Profile = nil
			}
			e, bad := envelope.Narrow(above, c.r)
			if c.fields != "" {
				if len(bad) != 1 || bad[0].Field != c.fields || bad[0].Asked == "" || bad[0].Allowed == "" {
					t.Errorf("%+v", bad)
				}
				return
			}
			if len(bad) > 0 || e.Image != c.image || e.Posture.ImageID != c.id || e.Origins["image"] != c.origin {
				t.Errorf("%s = %s from %s, %+v", e.Image, e.Posture.ImageID, e.Origins["image"], bad)
			}
		})
	}
}
