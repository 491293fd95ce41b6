package runner

import (
	"time"

	"sandboxd/internal/job"
	"sandboxd/internal/sandbox"
	"sandboxd/internal/wire"
)

// Files of a job in its slot's directory.
const (
	taskFile  = "task.json"  // its parent's words
	termsFile = "agent.json" // what an agent is told of its envelope: trust, risk, tools, mode, model
)

// finishMin is the least finishing window, so that a trap of a one-second job gets to run.
const finishMin = 200 * time.Millisecond

// pidsSlack is what RLIMIT_NPROC allows beyond the job's pids where the job has no cgroup of its own: init's threads.
const pidsSlack = 16

// window is the finishing window: min(grace, timeout/8).
func (x *run) window() time.Duration {
	timeout := time.Duration(x.posture.TimeoutMS) * time.Millisecond
	return max(min(x.r.opt.CancelGrace, timeout/8), finishMin)
}

func (x *run) startMessage() wire.Start {
	s := wire.Start{
		Argv: x.job.Spec.Command, Env: environment(x.job, x.door != nil), Dir: x.job.Spec.Workdir,
		Stdin:     x.job.Spec.Stdin != job.StdinNone,
		TimeoutMS: x.posture.TimeoutMS, FinishMS: x.window().Milliseconds(), GraceMS: x.window().Milliseconds(),
		Nofile: uint64(x.posture.Nofile),
	}
	if !x.slot.Evidence().TwoCgroups {
		s.Nproc = uint64(x.posture.Pids) + pidsSlack
	}
	return s
}

// environment is the whole environment of the command. HOME is writable and allows execution, /tmp does not: build
// caches and temporary executables point to HOME. What the request sets comes last and wins.
func environment(j job.Job, door bool) []string {
	base := []job.EnvVar{
		{Name: "PATH", Value: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/sbx/bin"},
		{Name: "HOME", Value: sandbox.PathHome},
		{Name: "USER", Value: "job"},
		{Name: "LOGNAME", Value: "job"},
		{Name: "LANG", Value: "C.UTF-8"},
		{Name: "TMPDIR", Value: sandbox.PathTmp},
		{Name: "XDG_CACHE_HOME", Value: sandbox.PathHome + "/.cache"},
		{Name: "GOTMPDIR", Value: sandbox.PathHome},
		{Name: "SANDBOXD_JOB", Value: string(j.ID)},
		{Name: "SANDBOXD_OUT", Value: sandbox.PathOut},
	}
	if j.Spec.Task != nil {
		base = append(base, job.EnvVar{Name: "SANDBOXD_TASK", Value: sandbox.PathSlot + "/" + taskFile})
	}
	if j.Spec.Agent != nil {
		base = append(base, job.EnvVar{Name: "SANDBOXD_AGENT", Value: sandbox.PathSlot + "/" + termsFile})
	}
	if door {
		base = append(base, job.EnvVar{Name: "SANDBOXD_SOCKET", Value: sandbox.PathSlot + "/" + sandbox.JobSocketName})
	}
	asked := map[string]bool{}
	for _, e := range j.Spec.Env {
		asked[e.Name] = true
	}
	var env []string
	for _, e := range base {
		if !asked[e.Name] {
			env = append(env, e.Name+"="+e.Value)
		}
	}
	for _, e := range j.Spec.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	return env
}
