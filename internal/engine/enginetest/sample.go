package enginetest

import (
	"encoding/json"

	"github.com/moby/profiles/seccomp"

	"sandboxd/internal/engine"
)

// TestLabel marks every container the tests make; its value is one test's own.
const TestLabel = "sandboxd.test"

// Tag makes a value for the TestLabel.
func Tag() string { return randomHex(6) }

// Sample returns a container with every setting a slot has, that runs script in a shell. Its name is random; its
// TestLabel is tag, by which Sweep finds it.
func Sample(img engine.Image, info engine.Info, tag, script string) engine.Container {
	profile, err := json.Marshal(seccomp.DefaultProfile())
	must(err)
	return engine.Container{
		Name: "sandboxd-test-" + randomHex(6), Image: img.ID, Runtime: "runc",
		Entrypoint: []string{ProgramPath, "sh", "-c"}, Cmd: []string{script},
		Env: []string{"A=1", "EMPTY=", "PATH=/bin"}, WorkingDir: "/", Hostname: "sandbox", StopSignal: "SIGTERM",
		User: "1900000000:1900000000", Groups: []string{"1900000001", "1900000002"},
		Labels: map[string]string{TestLabel: tag},

		ReadonlyRootfs: true, CapDrop: []string{"ALL"},
		SecurityOpt:   []string{"no-new-privileges", "seccomp=" + string(profile)},
		MaskedPaths:   []string{"/proc/kcore", "/proc/keys", "/sys/firmware"},
		ReadonlyPaths: []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"},
		NetworkMode:   "none", IpcMode: "none", CgroupnsMode: "private", CgroupParent: cgroupParent(info, tag),
		DNS: []string{"127.0.0.1"}, DNSSearch: []string{"."}, DNSOptions: []string{"ndots:1"},

		Memory: 64 << 20, MemorySwap: 64 << 20, NanoCPUs: 500_000_000, PidsLimit: 64, OomScoreAdj: 500, ShmSize: 1 << 20,
		Ulimits: []engine.Ulimit{
			{Name: "core"}, {Name: "memlock", Soft: 64 << 10, Hard: 64 << 10}, {Name: "msgqueue"},
			{Name: "nofile", Soft: 1024, Hard: 4096}, {Name: "rtprio"},
		},
		Tmpfs: map[string]string{
			"/tmp":      "rw,nosuid,nodev,noexec,size=4194304,nr_inodes=128,uid=1900000000,gid=1900000000,mode=1777",
			"/home/job": "rw,nosuid,nodev,exec,size=8m,nr_inodes=256,uid=1900000000,gid=1900000000,mode=0700",
		},
		RestartPolicy: "no", LogDriver: "none",
	}
}

// cgroupParent is the parent cgroup of one test's containers; the systemd driver wants a slice.
func cgroupParent(info engine.Info, tag string) string {
	if info.CgroupDriver == "systemd" {
		return "sandboxdtest" + tag + ".slice"
	}
	return "/" + cgroupName + tag
}

const cgroupName = "sandboxd-test-"
