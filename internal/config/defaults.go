package config

import (
	"time"

	"sandboxd/internal/envelope"
)

// Host is what the defaults are derived from.
type Host struct {
	Cores  int
	Memory int64 // bytes
}

// DefaultProfile is the name of the profile a request without one gets.
const DefaultProfile = "default"

const (
	mib = 1 << 20
	gib = 1 << 30

	uidCount  = 65536
	uidStride = 8
)

// Default is the configuration of an empty file on this host.
func Default(h Host) Config {
	room := max((h.Memory-h.Memory/8)&^(mib-1), envelope.MinMemory+envelope.InitMemory) // the rest is the host's own
	cores := max(h.Cores, 1)
	// Two containers' uids for each running job, for some may be in cleanup.
	running := min(max(2*cores, 2), int(max(room/gib, 1)), uidCount/uidStride/2)
	c := Config{
		Socket: Socket{Path: "/run/sandboxd/sandboxd.sock", MaxConns: 512, MaxConnsUser: 256},
		State:  State{Dir: "/var/lib/sandboxd", RunDir: "/run/sandboxd"},
		Engine: Engine{Runtime: envelope.RuntimeRunc, CallTimeout: 30 * time.Second, WarmSlots: 2, WarmFor: 10 * time.Minute},
		Images: Images{Default: "sandboxd/base", Allow: []string{"sandboxd/base", "sandboxd/tiny"}, Pull: "never"},
		Capacity: Capacity{
			MaxRunning: running, MaxRunningPerUser: max(running/2, 1), MaxQueued: 10000, MaxQueuedPerUser: 5000,
			MilliCPUs: int64(2*cores) * 1000, Memory: room, MinFreeDisk: gib,
		},
		Slots:    Slots{UIDFirst: 1900000000, UIDCount: uidCount, UIDStride: uidStride},
		Jobs:     Jobs{LeaseGrace: 10 * time.Second, CancelGrace: 15 * time.Second, Retention: 24 * time.Hour, KeepPerUser: 10000},
		Profiles: []envelope.Profile{defaultProfile(cores, room)},
		Log:      Log{Level: "info"},
	}
	file{}.applyProfiles(&c) // Load and Parse do it again and say what is wrong
	return c
}

func defaultProfile(cores int, room int64) envelope.Profile {
	return envelope.Profile{
		Name:        DefaultProfile,
		Description: "no network, read-only workspace",
		Default: envelope.Posture{
			Runtime: envelope.RuntimeRunc, MilliCPUs: 1000, Memory: min(gib, room-envelope.InitMemory), Pids: 512, Nofile: 1024,
			TmpBytes: 128 * mib, HomeBytes: 512 * mib, OutBytes: 64 * mib, Inodes: 65536, HomeExec: true,
			OutputKeep: 512 * mib, TimeoutMS: (10 * time.Minute).Milliseconds(),
		},
		Limit: envelope.Posture{
			Runtime: envelope.RuntimeRunc, MilliCPUs: int64(cores) * 1000, Memory: room - envelope.InitMemory, Pids: 4096, Nofile: 65536,
			TmpBytes: 8 * gib, HomeBytes: 8 * gib, OutBytes: gib, Inodes: 1 << 20, HomeExec: true,
			OutputKeep: 4 * gib, TimeoutMS: (6 * time.Hour).Milliseconds(),
		},
		Origins: map[string]envelope.Origin{},
	}
}
