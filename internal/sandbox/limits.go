package sandbox

import "sandboxd/internal/envelope"

// limits are the amounts a cgroup holds.
type limits struct {
	milliCPUs int64
	memory    int64 // bytes; swap included
	pids      int64
}

// jobLimits are the posture's own.
func jobLimits(p envelope.Posture) limits {
	return limits{milliCPUs: p.MilliCPUs, memory: p.Memory, pids: p.Pids}
}

// containerLimits are the job's and init's share. The cpu cannot be more than the host has.
func containerLimits(p envelope.Posture, hostMilliCPUs int64) limits {
	l := limits{
		milliCPUs: min(p.MilliCPUs+initMilliCPUs, max(hostMilliCPUs, p.MilliCPUs)),
		memory:    p.Memory + envelope.InitMemory,
		pids:      p.Pids + envelope.InitPids,
	}
	if p.Runtime == envelope.RuntimeRunsc {
		l.pids = max(l.pids, runscPids)
	}
	return l
}

// tcpMemory is the share of the memory limit that socket buffers may take: cgroup v1 counts them apart from it.
func (l limits) tcpMemory() int64 { return l.memory / 4 }
