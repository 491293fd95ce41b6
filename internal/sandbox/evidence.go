package sandbox

// Evidence is what the gate saw, stored with the job. Times are in milliseconds.
type Evidence struct {
	Runtime     string            `json:"runtime"`
	ContainerID string            `json:"container_id"`
	UID         uint32            `json:"uid"`
	TwoCgroups  bool              `json:"two_cgroups"`  // false: set RLIMIT_NPROC = pids + 8 on the command
	PeerIsInit  bool              `json:"peer_is_init"` // the socket's peer is the engine's pid, by pidfd or credentials
	AppArmor    string            `json:"apparmor"`     // label of init, "" where the host has none
	Seccomp     string            `json:"seccomp"`      // sha256 of the filter's JSON
	Init        ProcessEvidence   `json:"init"`
	Stub        ProcessEvidence   `json:"stub"`
	Denied      map[string]string `json:"denied"` // system call → errno name it gave the stub
	Limits      map[string]string `json:"limits"` // cgroup file → what the kernel says, container's and job's
	Cgroups     map[string]string `json:"cgroups"`
	Mounts      []string          `json:"mounts"` // "target fstype options" of every mount
	Namespaces  map[string]string `json:"namespaces"`
	Notes       []string          `json:"notes,omitempty"` // absences that do not fail the gate
	Steps       []Step            `json:"steps"`
}

// ProcessEvidence is /proc/<pid>/status as far as it matters.
type ProcessEvidence struct {
	Pid        int    `json:"pid"`  // on the host
	Caps       string `json:"caps"` // Inh Prm Eff Bnd Amb, or "none"
	NoNewPrivs int    `json:"no_new_privs"`
	Seccomp    int    `json:"seccomp"`
	UIDs       string `json:"uids"`
	GIDs       string `json:"gids"`
	Groups     string `json:"groups"`
}

// Step is one step of a fill and how long it took.
type Step struct {
	Name string  `json:"name"`
	MS   float64 `json:"ms"`
}
