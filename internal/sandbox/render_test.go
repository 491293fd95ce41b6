package sandbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/engine"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
	"sandboxd/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares text with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", file, diff)
	}
}

func goldenJSON(t *testing.T, name string, v any) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	golden(t, name, b.Bytes())
}

func somePosture() envelope.Posture {
	return envelope.Posture{
		ImageID: "sha256:" + strings.Repeat("ab", 32), Runtime: envelope.RuntimeRunc, MilliCPUs: 1000, Memory: 512 << 20, Pids: 256,
		Nofile: 4096, TmpBytes: 64 << 20, HomeBytes: 128 << 20, OutBytes: 32 << 20, Inodes: 10000, HomeExec: true,
		OutputKeep: 1 << 20, TimeoutMS: 1000,
	}
}

func someFacts() sandbox.Facts {
	return sandbox.Facts{
		Instance: "0123456789abcdef", Slot: "5107510751075107", Job: "01890000-0000-7000-8000-000000000000", UID: 1900000008,
		CgroupParent: "/sandboxd-01234567", InitFile: "/run/sandboxd/bin/sbx-init", SbxFile: "/run/sandboxd/bin/sbx",
		SlotDir: "/run/sandboxd/slots/5107510751075107", Seccomp: "{}", HostMilliCPUs: 4000,
	}
}

func TestRender(t *testing.T) {
	for name, change := range map[string]func(*envelope.Posture, *sandbox.Facts){
		"plain": func(*envelope.Posture, *sandbox.Facts) {},
		"small": func(p *envelope.Posture, _ *sandbox.Facts) {
			*p = envelope.Posture{ImageID: p.ImageID, Runtime: "runc", MilliCPUs: 10, Memory: 64 << 20, Pids: 1, Nofile: 1,
				TmpBytes: 4096, HomeBytes: 5000, OutBytes: 4096, Inodes: 1}
		},
		"whole-host": func(p *envelope.Posture, _ *sandbox.Facts) { p.MilliCPUs = 4000 },
		"runsc":      func(p *envelope.Posture, _ *sandbox.Facts) { p.Runtime = envelope.RuntimeRunsc },
		"mounts-and-hostile-image": func(_ *envelope.Posture, f *sandbox.Facts) {
			f.Binds = []sandbox.Bind{{Source: "/srv/work", Target: "/workspace"}, {Source: "/srv/data", Target: "/mnt/data"}}
			f.ImageEnv = []string{"PATH=/evil", "LD_PRELOAD=/evil.so", "GODEBUG=x=1", "GOMEMLIMIT=1", "EMPTY="}
			f.ImageVolumes = []string{"/var/lib/db", "/tmp", "/workspace", "/var/cache/"}
			f.AppArmor = true
			f.CgroupParent = "sandboxd-01234567.slice"
			f.MaskToo = []string{"/sys/devices/system/cpu/cpu0/thermal_throttle"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := somePosture(), someFacts()
			change(&p, &f)
			c, err := sandbox.Render(p, f)
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.Validate(c); err != nil {
				t.Errorf("the engine would refuse it: %v", err)
			}
			goldenJSON(t, "render-"+name+".golden.json", c)
		})
	}
}

// TestRenderKeepsTheWalls holds what no posture may change.
func TestRenderKeepsTheWalls(t *testing.T) {
	c, err := sandbox.Render(somePosture(), someFacts())
	if err != nil {
		t.Fatal(err)
	}
	for _, moby := range []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	} {
		if !slices.Contains(c.MaskedPaths, moby) {
			t.Errorf("%s is not masked, and moby masks it", moby)
		}
	}
	for target, options := range c.Tmpfs {
		if !strings.HasPrefix(options, "rw,nosuid,nodev,") || !strings.Contains(options, ",size=") || !strings.Contains(options, ",nr_inodes=") {
			t.Errorf("tmpfs %s: %s", target, options)
		}
	}
	for _, b := range c.Binds {
		if !b.ReadOnly || b.Propagation != "private" {
			t.Errorf("bind %+v", b)
		}
	}
	if c.Memory != c.MemorySwap || c.Memory <= somePosture().Memory || c.PidsLimit <= somePosture().Pids {
		t.Errorf("limits %d %d %d", c.Memory, c.MemorySwap, c.PidsLimit)
	}
}

func TestRenderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*envelope.Posture, *sandbox.Facts)
		field  string
	}{
		"no cpu":            {func(p *envelope.Posture, _ *sandbox.Facts) { p.MilliCPUs = 0 }, "milli_cpus"},
		"negative memory":   {func(p *envelope.Posture, _ *sandbox.Facts) { p.Memory = -1 }, "memory"},
		"no pids":           {func(p *envelope.Posture, _ *sandbox.Facts) { p.Pids = 0 }, "pids"},
		"no inodes":         {func(p *envelope.Posture, _ *sandbox.Facts) { p.Inodes = 0 }, "inodes"},
		"no tmp":            {func(p *envelope.Posture, _ *sandbox.Facts) { p.TmpBytes = 0 }, "tmp_bytes"},
		"unknown runtime":   {func(p *envelope.Posture, _ *sandbox.Facts) { p.Runtime = "crun" }, "runtime"},
		"no runtime":        {func(p *envelope.Posture, _ *sandbox.Facts) { p.Runtime = "" }, "runtime"},
		"more than a host":  {func(p *envelope.Posture, _ *sandbox.Facts) { p.MilliCPUs = 4001 }, "milli_cpus"},
		"tmpfs over memory": {func(p *envelope.Posture, _ *sandbox.Facts) { p.HomeBytes = 1 << 30 }, "memory"},
		"volume over proc":  {func(_ *envelope.Posture, f *sandbox.Facts) { f.ImageVolumes = []string{"/proc"} }, "image"},
		"volume over root":  {func(_ *envelope.Posture, f *sandbox.Facts) { f.ImageVolumes = []string{"/"} }, "image"},
		"volume in sbx":     {func(_ *envelope.Posture, f *sandbox.Facts) { f.ImageVolumes = []string{"/sbx/bin"} }, "image"},
		"volume over home":  {func(_ *envelope.Posture, f *sandbox.Facts) { f.ImageVolumes = []string{"/home"} }, "image"},
		"volume by dots":    {func(_ *envelope.Posture, f *sandbox.Facts) { f.ImageVolumes = []string{"/x/../dev"} }, "image"},
		"many volumes": {func(_ *envelope.Posture, f *sandbox.Facts) {
			f.ImageVolumes = strings.Fields("/1 /2 /3 /4 /5 /6 /7 /8 /9")
		}, "image"},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := somePosture(), someFacts()
			c.change(&p, &f)
			_, err := sandbox.Render(p, f)
			var e *job.Error
			if !errors.As(err, &e) || e.Field != c.field {
				t.Fatalf("got %v, want an error about %s", err, c.field)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		text, err := sandbox.Filter(arch)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(text), "", " "); err != nil {
			t.Fatal(err)
		}
		golden(t, "seccomp-"+arch+".golden.json", append(b.Bytes(), '\n'))
	}
	if _, err := sandbox.Filter("s390x"); err == nil {
		t.Error("a filter for an architecture nobody wrote rules for")
	}
}
