package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"sandboxd/api"
	"sandboxd/internal/admission"
	"sandboxd/internal/job"
)

// ToRequest says a decoded request in the words of admission, which checks its values. Nothing is defaulted here.
func ToRequest(r api.JobRequest) (admission.Request, error) {
	hash, err := bodyHash(r)
	if err != nil {
		return admission.Request{}, err
	}
	out := admission.Request{
		Command:        r.Command,
		Image:          r.Image,
		Profile:        r.Profile,
		Role:           r.Role,
		Skills:         r.Skills,
		Task:           (*job.Task)(r.Task),
		Stdin:          r.Stdin,
		StdinStream:    r.StdinStream,
		Workdir:        r.Workdir,
		TimeoutMS:      wholeMS(r.Timeout),
		Result:         r.Result,
		Labels:         r.Labels,
		Name:           r.Name,
		Priority:       r.Priority,
		Lease:          r.Lease,
		Session:        r.ParentSession,
		IdempotencyKey: r.IdempotencyKey,
		BodyHash:       hash,
		Trust:          r.Trust,
		MaxRisk:        r.MaxRisk,
		Tools:          toTools(r.Tools),
		Model:          r.Model,
		Mode:           r.Mode,
		Budget:         toBudget(r.Budget),
		Egress:         (*admission.Egress)(r.Egress),
		MaxDepth:       amount(r.MaxDepth),
		MaxTreeJobs:    amount(r.MaxTreeJobs),
		MaxTreeLive:    amount(r.MaxTreeLive),
		Delegates:      r.Delegates,
		EnvInherit:     r.EnvInherit,
		Secrets:        r.Secrets,
		Project:        toProject(r.Project),
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		out.Env = append(out.Env, job.EnvVar{Name: name, Value: r.Env[name]})
	}
	if r.Workspace != nil {
		out.Workspace = &job.Workspace{Path: r.Workspace.Path, Mode: job.WorkspaceMode(r.Workspace.Mode)}
	}
	for _, m := range r.Mounts {
		out.Mounts = append(out.Mounts, job.Mount(m))
	}
	out.Limits = toLimits(r.Limits)
	return out, nil
}

func toLimits(l *api.Limits) admission.Limits {
	if l == nil {
		return admission.Limits{}
	}
	return admission.Limits{
		MilliCPUs:  amount(l.CPUs),
		Memory:     amount(l.Memory),
		Pids:       amount(l.Pids),
		Nofile:     amount(l.Nofile),
		TmpBytes:   amount(l.TmpBytes),
		HomeBytes:  amount(l.HomeBytes),
		OutBytes:   amount(l.OutBytes),
		DiskBytes:  amount(l.DiskBytes),
		OutputKeep: amount(l.OutputKeep),
	}
}

func amount[T ~int64](v *T) *int64 {
	if v == nil {
		return nil
	}
	return new(int64(*v))
}

// wholeMS rounds up, so that a span just over a bound is not taken for the bound.
func wholeMS(d *api.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := int64(*d) / int64(time.Millisecond)
	if int64(*d)%int64(time.Millisecond) > 0 {
		ms++
	}
	return &ms
}

// bodyHash is the sha256 of the request in one fixed form: fields in the order of the type, maps sorted, quantities
// as numbers, without the idempotency key. Two spellings of the same request have the same hash.
func bodyHash(r api.JobRequest) (string, error) {
	r.IdempotencyKey = ""
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(r); err != nil {
		return "", job.Wrap(job.CodeInternal, err, "hashing the request")
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
