package admission

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

const defaultProfile = "default"

func checkProfile(_ context.Context, c *Checker, a *attempt) error {
	name := a.req.Profile
	if name == "" {
		name = defaultProfile
	}
	var known []string
	for _, p := range c.rules.Profiles {
		if p.Name == name {
			a.profile = p
			a.out.Spec.Profile = name
			return nil
		}
		known = append(known, p.Name)
	}
	sort.Strings(known)
	return job.Errorf(job.CodeNotInRoster, "profile", "there is no profile %.64q; there are: %s", name, strings.Join(known, ", ")).WithHint("see 'sbx profiles'")
}

func checkEnvelope(_ context.Context, _ *Checker, a *attempt) error {
	l := a.req.Limits
	if l.DiskBytes != nil {
		return invalid("limits.disk_bytes", "a job has no disk of its own without an overlay workspace; leave it out").
			WithHint("home_bytes, tmp_bytes and out_bytes bound what a job may write")
	}
	ask := envelope.Ask{}
	for name, v := range map[string]*int64{
		"cpus": l.MilliCPUs, "memory": l.Memory, "pids": l.Pids, "nofile": l.Nofile, "tmp_bytes": l.TmpBytes,
		"home_bytes": l.HomeBytes, "out_bytes": l.OutBytes, "output_keep": l.OutputKeep, "timeout": a.req.TimeoutMS,
	} {
		if v != nil {
			ask[name] = *v
		}
	}
	if bad := ask.TooSmall(); len(bad) > 0 {
		return violated(job.CodeInvalid, bad, "too small").WithHint("0 never means unlimited; leave a value out to get the profile's")
	}
	e, bad := envelope.Root(a.profile, ask)
	if len(bad) > 0 {
		return violated(job.CodeNotSubset, bad, "more than profile "+a.profile.Name+" allows").
			WithHint("ask for less, or let the operator raise [limits]")
	}
	a.out.Envelope = e
	return nil
}

// violated makes one refusal of all violations. A single one is its message; several stand beside it.
func violated(code job.Code, bad []job.Violation, what string) *job.Error {
	for i := range bad {
		if bad[i].Field != "timeout" {
			bad[i].Field = "limits." + bad[i].Field
		}
	}
	e := job.Errorf(code, "", "%d values are %s", len(bad), what)
	if len(bad) == 1 {
		v := bad[0]
		e = job.Errorf(code, v.Field, "asked %s, allowed is %s (%s)", v.Asked, v.Allowed, v.Why)
	}
	e.Violations = bad
	return e
}

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
