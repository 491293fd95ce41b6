package admission

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
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
		if v == nil {
			continue
		}
		if *v <= 0 {
			return invalid(fieldOf(name), "%d is not allowed: 0 never means unlimited; leave it out for the profile's value", *v)
		}
		ask[name] = *v
	}
	e, bad := envelope.Root(a.profile, ask)
	if len(bad) > 0 {
		return notSubset(bad, a.profile.Name)
	}
	a.out.Envelope = e
	return nil
}

func fieldOf(name string) string {
	if name == "timeout" {
		return name
	}
	return "limits." + name
}

func notSubset(bad []job.Violation, profile string) *job.Error {
	sort.Slice(bad, func(i, j int) bool { return bad[i].Field < bad[j].Field })
	parts := make([]string, len(bad))
	for i, v := range bad {
		parts[i] = fmt.Sprintf("%s: asked %s, profile %s allows %s", v.Field, v.Asked, profile, v.Allowed)
		if v.Why != "" {
			parts[i] += " (" + v.Why + ")"
		}
	}
	e := job.Errorf(job.CodeNotSubset, "", "%s", strings.Join(parts, "; ")).WithHint("ask for less, or let the operator raise [limits]")
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
	if need := p.Memory + envelope.InitMemory; need > c.rules.Memory {
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
	if need := c.rules.MinFreeDisk + a.out.Envelope.Posture.OutputKeep; free < need {
		return job.Errorf(job.CodeDiskFloor, "", "%s are free in the state directory; this job's stored output (%s) would not leave the %s that must stay free",
			envelope.ShowBytes(free), envelope.ShowBytes(a.out.Envelope.Posture.OutputKeep), envelope.ShowBytes(c.rules.MinFreeDisk)).
			WithHint("free some space, ask for a smaller output_keep, or let the operator lower capacity.min_free_disk")
	}
	return nil
}

func checkPaths(ctx context.Context, c *Checker, a *attempt) error {
	if w := a.req.Workspace; w != nil {
		switch w.Mode {
		case "", job.WorkspaceRO:
		case job.WorkspaceOverlay, job.WorkspaceRW:
			return invalid("workspace.mode", "%q is not served by this version; use ro", string(w.Mode))
		default:
			return invalid("workspace.mode", "%.64q is not a mode; use ro", string(w.Mode))
		}
		resolved, dir, err := c.path(ctx, a.caller, "workspace", w.Path)
		if err != nil {
			return err
		}
		if !dir {
			return job.Errorf(job.CodeWorkspace, "workspace", "%q is not a directory", w.Path).WithHint("give a single file as a mount: -v %s:NAME", w.Path)
		}
		a.out.Spec.Workspace = &job.Workspace{Path: resolved, Mode: job.WorkspaceRO}
	}
	if n := len(a.req.Mounts); n > maxMounts {
		return invalid("mounts", "%d, at most %d are allowed", n, maxMounts)
	}
	var seen []string
	for _, m := range a.req.Mounts {
		if !namePattern.MatchString(m.Name) {
			return invalid("mounts", "%.64q is not a mount's name; use 1 to 63 of a-z A-Z 0-9 _ . - and begin with a letter or digit", m.Name)
		}
		if slices.Contains(seen, m.Name) {
			return invalid("mounts", "the name %q is used twice", m.Name)
		}
		seen = append(seen, m.Name)
		resolved, _, err := c.path(ctx, a.caller, "mounts."+m.Name, m.Source)
		if err != nil {
			return err
		}
		a.out.Spec.Mounts = append(a.out.Spec.Mounts, job.Mount{Source: resolved, Name: m.Name})
	}
	return nil
}

func (c *Checker) path(ctx context.Context, caller job.Caller, field, p string) (string, bool, error) {
	if len(p) > maxPath || !filepath.IsAbs(p) || strings.IndexByte(p, 0) >= 0 {
		return "", false, invalid(field, "%.128q is not an absolute host path of at most %d bytes", p, maxPath)
	}
	resolved, dir, err := c.paths.Check(ctx, caller, p)
	if e, ok := err.(*job.Error); ok && e.Field == "" {
		e.Field = field
	}
	return resolved, dir, err
}

// checkImage resolves the name to an id. While the engine is away the name is kept and resolved when the job starts.
func checkImage(ctx context.Context, c *Checker, a *attempt) error {
	name := a.req.Image
	origin := envelope.FromRequest
	if name == "" {
		name, origin = c.rules.DefaultImage, envelope.FromDefault
	}
	if len(name) > maxWord || hasControl(name) {
		return invalid("image", "%.64q is not an image's name", name)
	}
	if !slices.ContainsFunc(c.rules.AllowImages, func(allowed string) bool { return sameImage(allowed, name) }) {
		return job.Errorf(job.CodeImage, "image", "%.128q is not among the images that may run here: %s", name, strings.Join(c.rules.AllowImages, ", ")).
			WithHint("choose one of them, or let the operator add it to images.allow")
	}
	id, err := c.images.Resolve(ctx, name)
	if err != nil && job.CodeOf(err) != job.CodeEngine {
		return err
	}
	a.out.Spec.Image, a.out.Spec.ImageID = name, id
	a.out.Envelope.Posture.ImageID = id
	a.out.Envelope.Origins["image"] = origin
	return nil
}

// sameImage compares names with an absent tag read as latest.
func sameImage(a, b string) bool { return withTag(a) == withTag(b) }

func withTag(name string) string {
	if strings.Contains(name, "@") || strings.HasPrefix(name, "sha256:") {
		return name
	}
	if slash := strings.LastIndexByte(name, '/'); !strings.Contains(name[slash+1:], ":") {
		return name + ":latest"
	}
	return name
}
