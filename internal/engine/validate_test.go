package engine_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/engine"
)

func TestASampleIsTaken(t *testing.T) {
	if err := engine.Validate(sample()); err != nil {
		t.Fatal(err)
	}
	if err := engine.Validate(withBinds()); err != nil {
		t.Fatal(err)
	}
}

func TestRefusalsNameTheField(t *testing.T) {
	type C = engine.Container
	for field, changes := range map[string][]func(*C){
		"Name":            {func(c *C) { c.Name = "" }, func(c *C) { c.Name = "a/b" }},
		"Image":           {func(c *C) { c.Image = "" }, func(c *C) { c.Image = "debian:12" }, func(c *C) { c.Image = "sha256:123" }},
		"User":            {func(c *C) { c.User = "" }, func(c *C) { c.User = "1000" }, func(c *C) { c.User = "me:me" }},
		"Groups[1]":       {func(c *C) { c.Groups = []string{"1", "docker"} }},
		"Entrypoint":      {func(c *C) { c.Entrypoint, c.Cmd = nil, nil }},
		"Labels":          {func(c *C) { c.Labels = map[string]string{"": "x"} }},
		"Runtime":         {func(c *C) { c.Runtime = "" }},
		"NetworkMode":     {func(c *C) { c.NetworkMode = "" }, func(c *C) { c.NetworkMode = "host" }, func(c *C) { c.NetworkMode = "bridge" }},
		"IpcMode":         {func(c *C) { c.IpcMode = "" }, func(c *C) { c.IpcMode = "host" }, func(c *C) { c.IpcMode = "shareable" }},
		"CgroupnsMode":    {func(c *C) { c.CgroupnsMode = "" }, func(c *C) { c.CgroupnsMode = "host" }},
		"CgroupParent":    {func(c *C) { c.CgroupParent = "" }},
		"PidMode":         {func(c *C) { c.PidMode = "host" }},
		"UTSMode":         {func(c *C) { c.UTSMode = "host" }},
		"UsernsMode":      {func(c *C) { c.UsernsMode = "host" }},
		"MaskedPaths":     {func(c *C) { c.MaskedPaths = nil }},
		"ReadonlyPaths":   {func(c *C) { c.ReadonlyPaths = nil }},
		"CapDrop":         {func(c *C) { c.CapDrop = nil }, func(c *C) { c.CapDrop = []string{"NET_RAW"} }},
		"CapAdd":          {func(c *C) { c.CapAdd = []string{"NET_RAW"} }},
		"Memory":          {func(c *C) { c.Memory, c.MemorySwap = 0, 0 }, func(c *C) { c.Memory, c.MemorySwap = -1, -1 }, func(c *C) { c.Memory, c.MemorySwap = engine.Unlimited, engine.Unlimited }},
		"MemorySwap":      {func(c *C) { c.MemorySwap = 0 }, func(c *C) { c.MemorySwap = -1 }, func(c *C) { c.MemorySwap++ }},
		"NanoCPUs":        {func(c *C) { c.NanoCPUs = 0 }, func(c *C) { c.NanoCPUs = -1 }},
		"PidsLimit":       {func(c *C) { c.PidsLimit = 0 }, func(c *C) { c.PidsLimit = -1 }},
		"ShmSize":         {func(c *C) { c.ShmSize = 0 }},
		"OomScoreAdj":     {func(c *C) { c.OomScoreAdj = 1001 }},
		"Ulimits[0]":      {func(c *C) { c.Ulimits = []engine.Ulimit{{Name: "core", Soft: -1}} }, func(c *C) { c.Ulimits = []engine.Ulimit{{Soft: 1}} }, func(c *C) { c.Ulimits = []engine.Ulimit{{Name: "core", Soft: 2, Hard: 1}} }},
		"Ulimits[1]":      {func(c *C) { c.Ulimits = []engine.Ulimit{{Name: "core"}, {Name: "core"}} }},
		"Privileged":      {func(c *C) { c.Privileged = true }},
		"PublishAllPorts": {func(c *C) { c.PublishAllPorts = true }},
		"AutoRemove":      {func(c *C) { c.AutoRemove = true }},
		"Tty":             {func(c *C) { c.Tty = true }},
		"OpenStdin":       {func(c *C) { c.OpenStdin = true }},
		"Init":            {func(c *C) { c.Init = true }},
		"Devices":         {func(c *C) { c.Devices = 1 }},
		"Sysctls":         {func(c *C) { c.Sysctls = 1 }},
		"PortBindings":    {func(c *C) { c.PortBindings = 1 }},
		"VolumesFrom":     {func(c *C) { c.VolumesFrom = 1 }},
		"Links":           {func(c *C) { c.Links = 1 }},
		"Volumes":         {func(c *C) { c.Volumes = 1 }},
		"Healthcheck":     {func(c *C) { c.Healthcheck = true }},
		"Others":          {func(c *C) { c.Others = []string{"x"} }},
		"RestartPolicy":   {func(c *C) { c.RestartPolicy = "always" }},
		"LogDriver":       {func(c *C) { c.LogDriver = "json-file" }},
		"Hostname":        {func(c *C) { c.Hostname = "" }},
		"WorkingDir":      {func(c *C) { c.WorkingDir = "" }, func(c *C) { c.WorkingDir = "a" }, func(c *C) { c.WorkingDir = "/a/.." }},
		"StopSignal":      {func(c *C) { c.StopSignal = "" }},
		"DNS":             {func(c *C) { c.DNS = nil }},
		"DNSSearch":       {func(c *C) { c.DNSSearch = nil }},
		"DNSOptions":      {func(c *C) { c.DNSOptions = nil }},
		"Env[0]":          {func(c *C) { c.Env = []string{"=x"} }, func(c *C) { c.Env = []string{""} }, func(c *C) { c.Env = []string{"A=\x00"} }},
		"Tmpfs[/]":        {func(c *C) { c.Tmpfs["/"] = c.Tmpfs["/tmp"] }},
		"Tmpfs[a]":        {func(c *C) { c.Tmpfs["a"] = c.Tmpfs["/tmp"] }},
		"Tmpfs[/tmp]": {
			func(c *C) { c.Tmpfs["/tmp"] = "" },
			func(c *C) { c.Tmpfs["/tmp"] = "nosuid,nodev,nr_inodes=1" },
			func(c *C) { c.Tmpfs["/tmp"] = "nosuid,nodev,size=1" },
			func(c *C) { c.Tmpfs["/tmp"] = "nosuid,size=1,nr_inodes=1" },
			func(c *C) { c.Tmpfs["/tmp"] = "nodev,size=1,nr_inodes=1" },
			func(c *C) { c.Tmpfs["/tmp"] = "nosuid,nodev,size=0,nr_inodes=1" },
			func(c *C) { c.Tmpfs["/tmp"] = "nosuid,nodev,size=50%,nr_inodes=1" },
			func(c *C) { c.Tmpfs["/tmp"] = "nosuid,nodev,size=1,nr_inodes=0" },
			func(c *C) { c.Tmpfs["/tmp"] = "nosuid,nodev,size=1,nr_inodes=1,suid" },
			func(c *C) { c.Tmpfs["/tmp"] = "nosuid,nodev,size=1,size=2,nr_inodes=1" },
			func(c *C) { c.Tmpfs["/tmp"] = "nosuid,nodev,size=1,nr_inodes=1,shared" },
		},
		"Binds[0].Source":      {func(c *C) { c.Binds[0].Source = "a" }, func(c *C) { c.Binds[0].Source = "/" }, func(c *C) { c.Binds[0].Source = "/a/../b" }},
		"Binds[0].Target":      {func(c *C) { c.Binds[0].Target = "/" }, func(c *C) { c.Binds[0].Target = "" }, func(c *C) { c.Binds[0].Target = "/tmp" }},
		"Binds[1].Target":      {func(c *C) { c.Binds[1].Target = c.Binds[0].Target }},
		"Binds[0].Propagation": {func(c *C) { c.Binds[0].Propagation = "" }, func(c *C) { c.Binds[0].Propagation = "rshared" }, func(c *C) { c.Binds[0].Propagation = "rprivate" }},
	} {
		for i, change := range changes {
			c := withBinds()
			change(&c)
			err := engine.Validate(c)
			var fault *engine.FieldError
			if !errors.As(err, &fault) || fault.Field != field {
				t.Errorf("%s, change %d: error %v", field, i, err)
			}
		}
	}
}

func TestNormalForm(t *testing.T) {
	in := engine.Container{
		Cmd: []string{}, CapDrop: []string{"net_raw", "CAP_CHOWN", "NET_RAW"}, MaskedPaths: []string{}, PidsLimit: -1, Memory: 5,
		Ulimits: []engine.Ulimit{{Name: "nofile", Soft: 1}, {Name: "core", Hard: 2}, {Name: "x", Soft: -1, Hard: -1}},
		Binds:   []engine.Bind{{Target: "/b"}, {Target: "/a"}}, Labels: map[string]string{}, Env: []string{"B", "A"},
	}
	want := engine.Container{
		CapDrop: []string{"CAP_CHOWN", "CAP_NET_RAW"}, MaskedPaths: []string{}, Memory: 5,
		MemorySwap: engine.Unlimited, NanoCPUs: engine.Unlimited, PidsLimit: engine.Unlimited,
		Ulimits: []engine.Ulimit{{Name: "core", Soft: 2, Hard: 2}, {Name: "nofile", Soft: 1, Hard: 1}, {Name: "x", Soft: engine.Unlimited, Hard: engine.Unlimited}},
		Binds:   []engine.Bind{{Target: "/a"}, {Target: "/b"}}, Env: []string{"B", "A"}, RestartPolicy: "no", LogDriver: "none",
	}
	once := engine.Normal(in)
	if diff := cmp.Diff(want, once); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(once, engine.Normal(once)); diff != "" {
		t.Errorf("twice is not once: %s", diff)
	}
	in.Binds[0].Source, in.Env[0] = "changed", "changed"
	if diff := cmp.Diff(want, once); diff != "" {
		t.Errorf("memory is shared: %s", diff)
	}
}

func TestUncoveredVolumes(t *testing.T) {
	c := withBinds()
	img := engine.Image{Volumes: []string{"/tmp", "/tmp/", "/ro", "/home", "/data"}}
	if got := engine.Uncovered(img, c); !slices.Equal(got, []string{"/home", "/data"}) {
		t.Errorf("%q", got)
	}
}
