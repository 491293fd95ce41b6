package admission_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"sandboxd/internal/admission"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// amountFields sets each amount of a request by the name of its field.
var amountFields = map[string]func(*admission.Request, int64){
	"limits.cpus":        func(r *admission.Request, v int64) { r.Limits.MilliCPUs = &v },
	"limits.memory":      func(r *admission.Request, v int64) { r.Limits.Memory = &v },
	"limits.pids":        func(r *admission.Request, v int64) { r.Limits.Pids = &v },
	"limits.nofile":      func(r *admission.Request, v int64) { r.Limits.Nofile = &v },
	"limits.tmp_bytes":   func(r *admission.Request, v int64) { r.Limits.TmpBytes = &v },
	"limits.home_bytes":  func(r *admission.Request, v int64) { r.Limits.HomeBytes = &v },
	"limits.out_bytes":   func(r *admission.Request, v int64) { r.Limits.OutBytes = &v },
	"limits.output_keep": func(r *admission.Request, v int64) { r.Limits.OutputKeep = &v },
	"timeout":            func(r *admission.Request, v int64) { r.TimeoutMS = &v },
}

func TestNoAmountIsUnlimited(t *testing.T) {
	if len(amountFields) != len(envelope.AmountNames()) {
		t.Fatalf("%d fields for the amounts %v", len(amountFields), envelope.AmountNames())
	}
	var cases []refusal
	for field, set := range amountFields {
		for _, v := range []int64{0, -1, math.MinInt64} {
			cases = append(cases, refusal{fmt.Sprintf("%s = %d", field, v), func(r *admission.Request) { set(r, v) }, job.CodeInvalid, field, "less than the minimum"})
		}
		for _, v := range []int64{1e18, math.MaxInt64} {
			cases = append(cases, refusal{fmt.Sprintf("%s = %d", field, v), func(r *admission.Request) { set(r, v) }, job.CodeNotSubset, field, "more than the limit"})
		}
	}
	cases = append(cases,
		refusal{"0.0001 cpu", func(r *admission.Request) { amountFields["limits.cpus"](r, 0) }, job.CodeInvalid, "limits.cpus", "asked 0, allowed is at least 0.01"},
		refusal{"a disk without an overlay", func(r *admission.Request) { r.Limits.DiskBytes = p[int64](gib) }, job.CodeInvalid, "limits.disk_bytes", "leave it out"},
		refusal{"a disk of zero", func(r *admission.Request) { r.Limits.DiskBytes = p[int64](0) }, job.CodeInvalid, "limits.disk_bytes", "leave it out"},
		refusal{"tmpfs beyond memory", func(r *admission.Request) { r.Limits.HomeBytes = p[int64](2 * gib) }, job.CodeNotSubset, "limits.tmp_bytes + home_bytes + out_bytes", "held in the job's memory"},
	)
	refuse(t, cases)
}

func TestAllViolationsStandInOneRefusal(t *testing.T) {
	for _, c := range []struct {
		v    int64
		code job.Code
	}{{math.MaxInt64, job.CodeNotSubset}, {0, job.CodeInvalid}} {
		r := plain()
		for _, set := range amountFields {
			set(&r, c.v)
		}
		_, err := check(newWorld(), alice, r)
		var e *job.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Hint == "" || len(e.Violations) != len(amountFields) {
			t.Fatalf("%d: %+v", c.v, err)
		}
		for _, v := range e.Violations {
			if amountFields[v.Field] == nil || v.Asked == "" || v.Allowed == "" || v.Why == "" {
				t.Errorf("%+v", v)
			}
		}
	}
}

func TestWhatCouldNeverStartIsRefused(t *testing.T) {
	refuse(t, []refusal{
		{"cpus", func(r *admission.Request) { r.Limits.MilliCPUs = p[int64](8001) }, job.CodeCapacity, "limits.cpus", "8.001 cores are more than all jobs together may use here (8)"},
		{"memory", func(r *admission.Request) { r.Limits.Memory = p[int64](16*gib - envelope.InitMemory + 1) }, job.CodeCapacity, "limits.memory", "24MiB for its init are more than all jobs together may use here (16GiB)"},
	})
	if _, err := check(newWorld(), alice, with(func(r *admission.Request) {
		r.Limits.MilliCPUs, r.Limits.Memory = p[int64](8000), p[int64](16*gib-envelope.InitMemory)
	})); err != nil {
		t.Errorf("all there is: %v", err)
	}
}

// An amount beside which any sum overflows must not look small.
func TestHugeLimitsDoNotWrap(t *testing.T) {
	r := rules()
	limit := &r.Profiles[0].Limit
	limit.Memory, limit.OutputKeep, limit.MilliCPUs = math.MaxInt64, math.MaxInt64, math.MaxInt64
	for name, c := range map[string]struct {
		spoil func(*admission.Request)
		code  job.Code
	}{
		"memory": {func(r *admission.Request) { r.Limits.Memory = p[int64](math.MaxInt64) }, job.CodeCapacity},
		"cpus":   {func(r *admission.Request) { r.Limits.MilliCPUs = p[int64](math.MaxInt64) }, job.CodeCapacity},
		"output": {func(r *admission.Request) { r.Limits.OutputKeep = p[int64](math.MaxInt64) }, job.CodeDiskFloor},
	} {
		w := newWorld()
		if _, err := admission.New(r, w, w, w).Check(t.Context(), alice, nil, with(c.spoil)); job.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDiskFloorHolds(t *testing.T) {
	for _, c := range []struct {
		free any
		code job.Code
	}{
		{int64(gib + 512*mib), ""}, {int64(gib + 512*mib - 1), job.CodeDiskFloor}, {int64(gib), job.CodeDiskFloor}, {int64(0), job.CodeDiskFloor},
		{int64(-1), job.CodeDiskFloor}, {int64(math.MinInt64), job.CodeDiskFloor}, {int64(math.MaxInt64), ""}, {errors.New("statfs"), job.CodeUnavailable},
	} {
		w := newWorld()
		w.free = c.free
		_, err := check(w, alice, plain())
		if c.code == "" && err != nil || c.code != "" && job.CodeOf(err) != c.code {
			t.Errorf("%v free: %v", c.free, err)
		}
		if err != nil && w.askedFor("image sandboxd/base") {
			t.Errorf("%v free: the engine was asked for a refused request", c.free)
		}
	}
	w := newWorld()
	w.free = int64(gib + 512*mib - 1)
	_, err := check(w, alice, plain())
	for _, number := range []string{"1610612735B are free", "512MiB", "1GiB"} {
		if !strings.Contains(err.Error(), number) {
			t.Errorf("%v lacks %s", err, number)
		}
	}
}

func workspace(path string, mode job.WorkspaceMode) func(*admission.Request) {
	return func(r *admission.Request) { r.Workspace = &job.Workspace{Path: path, Mode: mode} }
}

func mounts(m ...job.Mount) func(*admission.Request) {
	return func(r *admission.Request) { r.Mounts = m }
}

func TestPathsAreRefused(t *testing.T) {
	many := make([]job.Mount, 33)
	for i := range many {
		many[i] = job.Mount{Source: "/data", Name: fmt.Sprint("m", i)}
	}
	cases := []refusal{
		{"relative", workspace("src", ""), job.CodeInvalid, "workspace", "not an absolute host path"},
		{"empty", workspace("", "ro"), job.CodeInvalid, "workspace", "not an absolute host path"},
		{"NUL", workspace("/src\x00", ""), job.CodeInvalid, "workspace", "not an absolute host path"},
		{"too long", workspace("/"+strings.Repeat("x", 4095), ""), job.CodeInvalid, "workspace", "not an absolute host path"},
		{"missing", workspace("/none", ""), job.CodeWorkspace, "workspace", "does not exist"},
		{"hanging", workspace("/hung", ""), job.CodeWorkspace, "workspace", "did not answer"},
		{"a file", workspace("/src/file", ""), job.CodeWorkspace, "workspace", "is not a directory"},
		{"overlay", workspace("/src", "overlay"), job.CodeInvalid, "workspace.mode", "not served by this version"},
		{"rw", workspace("/src", "rw"), job.CodeInvalid, "workspace.mode", "not served by this version"},
		{"a mode of no kind", workspace("/src", "RO"), job.CodeInvalid, "workspace.mode", "asked RO, allowed is ro, overlay, rw (there is no such word)"},
		{"its own field", workspace("/named", ""), job.CodeWorkspace, "elsewhere", "has a field"},
		{"a link to what is no text", workspace("/odd\xff", ""), job.CodeWorkspace, "workspace", "is not UTF-8"},
		{"33 mounts", mounts(many...), job.CodeInvalid, "mounts", "33, at most 32"},
		{"mount missing", mounts(job.Mount{Source: "/none", Name: "x"}), job.CodeWorkspace, "mounts.x", "does not exist"},
		{"mount relative", mounts(job.Mount{Source: "./x", Name: "x"}), job.CodeInvalid, "mounts.x", "not an absolute host path"},
		{"one name twice", mounts(job.Mount{Source: "/data", Name: "x"}, job.Mount{Source: "/src", Name: "x"}), job.CodeInvalid, "mounts", `"x" is used twice`},
	}
	for _, name := range []string{"", ".", "..", "../etc", "a/b", "-x", "a b", "a\x00", "a\n", strings.Repeat("m", 64), "ä"} {
		cases = append(cases, refusal{fmt.Sprintf("mount called %.20q", name), mounts(job.Mount{Source: "/data", Name: name}), job.CodeInvalid, "mounts", "is not a mount's name"})
	}
	refuse(t, cases)
}

func TestFaultsOfOursAreNotTheCallers(t *testing.T) {
	for name, spoil := range map[string]func(*admission.Request){
		"path helper": workspace("/fault", ""), "engine": func(r *admission.Request) { r.Image = "broken" },
	} {
		if _, err := check(newWorld(), alice, with(spoil)); job.CodeOf(err) != job.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func image(name string) func(*admission.Request) {
	return func(r *admission.Request) { r.Image = name }
}

func TestImagesOutsideTheRosterAreRefused(t *testing.T) {
	cases := []refusal{
		{"missing though listed", image("gone"), job.CodeImage, "image", "no such image"},
		{"unfit", image("unfit"), job.CodeImage, "image", "carries devices"},
		{"long", image(strings.Repeat("x", 256)), job.CodeInvalid, "image", "is not an image's name"},
		{"control", image("sandboxd/base\n"), job.CodeInvalid, "image", "is not an image's name"},
		{"bad UTF-8", image("\xff"), job.CodeInvalid, "image", "is not an image's name"},
	}
	for _, name := range []string{"alpine", "sandboxd/base:v2", "sandboxd/tiny:other", "Sandboxd/base", "sandboxd/base@sha256:1", "sha256:9999", "sha256:0123:latest", "host:5000/x:1", "host/x", "latest", " "} {
		cases = append(cases, refusal{"image " + name, image(name), job.CodeImage, "image", "allowed is sandboxd/base, sandboxd/tiny:latest"})
	}
	refuse(t, cases)
}

// A refusal is shown, logged and stored: nothing a caller gives in confidence may stand in it.
func TestNothingSecretStandsInARefusal(t *testing.T) {
	const secret = "hunter2"
	r := plain()
	r.Env = []job.EnvVar{{Name: "TOKEN", Value: secret}}
	r.Stdin, r.Task = []byte(secret), &job.Task{Goal: secret}
	r.Command = []string{"login", secret}
	for _, spoil := range []func(*admission.Request){
		func(r *admission.Request) { r.Env[0].Value = secret + "\x00" },
		func(r *admission.Request) { r.Env[0].Value = strings.Repeat(secret, 1e5) },
		func(r *admission.Request) { r.Command = append(r.Command, secret+"\x00") },
		func(r *admission.Request) { r.Command = append(r.Command, strings.Repeat(secret, 1e5)) },
		func(r *admission.Request) { r.Task = &job.Task{Goal: strings.Repeat(secret, 1e6)} },
		func(r *admission.Request) { r.Stdin = []byte(strings.Repeat(secret, 1e6)) },
		func(r *admission.Request) { r.Limits.Memory = p[int64](0) },
		image("none"), workspace("/none", ""),
	} {
		bad := r
		bad.Env = append([]job.EnvVar{}, r.Env...)
		spoil(&bad)
		if _, err := check(newWorld(), alice, bad); err == nil || strings.Contains(fmt.Sprintf("%+v %v", err, err), secret) {
			t.Errorf("%.200v", err)
		}
	}
}
