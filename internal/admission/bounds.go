package admission

import (
	"context"
	"fmt"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// checkCapacity refuses what could never start on this host, for it would wait for ever.
func checkCapacity(_ context.Context, c *Checker, a *attempt) error {
	p := a.out.Envelope.Posture
	if p.MilliCPUs > c.rules.MilliCPUs {
		return job.Errorf(job.CodeCapacity, "limits.cpus", "%s cores are more than all jobs together may use here (%s)",
			cores(p.MilliCPUs), cores(c.rules.MilliCPUs)).WithHint("ask for fewer, or let the operator raise capacity.cpus")
	}
	if p.Memory > c.rules.Memory-envelope.InitMemory {
		return job.Errorf(job.CodeCapacity, "limits.memory", "%s and %s for its init are more than all jobs together may use here (%s)",
			envelope.ShowBytes(p.Memory), envelope.ShowBytes(envelope.InitMemory), envelope.ShowBytes(c.rules.Memory)).
			WithHint("ask for less, or let the operator raise capacity.memory")
	}
	return nil
}

func cores(milli int64) string { return fmt.Sprintf("%g", float64(milli)/1000) }

func checkDisk(_ context.Context, c *Checker, a *attempt) error {
	free, err := c.host.FreeDisk()
	if err != nil {
		return job.Wrap(job.CodeUnavailable, err, "the free disk space of the state directory cannot be read")
	}
	// What the job may make us store counts as used already.
	if keep := a.out.Envelope.Posture.OutputKeep; max(free, 0)-c.rules.MinFreeDisk < keep {
		return job.Errorf(job.CodeDiskFloor, "", "%s are free in the state directory; this job's stored output (%s) would not leave the %s that must stay free",
			envelope.ShowBytes(free), envelope.ShowBytes(keep), envelope.ShowBytes(c.rules.MinFreeDisk)).
			WithHint("free some space, ask for a smaller output_keep, or let the operator lower capacity.min_free_disk")
	}
	return nil
}
