package sandbox

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
)

// identify holds the container's init as the engine names it and proves by its cgroup that it is this container's.
func (f *filling) identify(pid int) error {
	p, err := openProcess(pid)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInitDied, err)
	}
	f.init = p
	paths, err := p.cgroups()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInitDied, err)
	}
	dirs, err := f.s.h.containerDirs(paths, f.s.parent, f.rec.ContainerID)
	if err != nil {
		return f.refuse([]string{err.Error()})
	}
	f.cg = &cgroups{h: f.s.h, container: dirs}
	return nil
}

// secure cuts the container's mounts off from the host and finds the stub.
func (f *filling) secure(context.Context) error {
	hardened, err := secureMounts(f.init, bindTargets(f.want))
	if err != nil {
		return err
	}
	if f.hardened = hardened; !hardened {
		f.ev.Notes = append(f.ev.Notes, "the kernel is older than 5.12: mounts are not nosuid")
	}
	return f.findStub()
}

// findStub: in the container's cgroup are init and the stub, its child, and nothing else.
func (f *filling) findStub() error {
	pids, err := processesOf(f.cg.container[f.cg.memberOf()])
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(pids, func(pid int) bool { return pid == f.init.pid })
	if len(others) != 1 {
		return f.refuse([]string{fmt.Sprintf("%d processes beside init, want the stub alone", len(others))})
	}
	if f.stub, err = openProcess(others[0]); err != nil {
		return f.refuse([]string{"stub: " + err.Error()})
	}
	st, err := f.stub.status()
	if err != nil {
		return f.refuse([]string{"stub: " + err.Error()})
	}
	if st.last("PPid") != f.init.pid || st.last("NSpid") != f.readyMsg.StubPID {
		return f.refuse([]string{fmt.Sprintf("stub: parent %d and inner pid %d, want %d and %d",
			st.last("PPid"), st.last("NSpid"), f.init.pid, f.readyMsg.StubPID)})
	}
	return nil
}

// gate reads everything the kernel says of the container and compares it with what must be.
func (f *filling) gate(context.Context) error {
	f.ev.Runtime, f.ev.ContainerID, f.ev.UID, f.ev.PeerIsInit = f.want.Runtime, f.rec.ContainerID, f.rec.UID, true
	f.ev.Seccomp = sha256Hex(f.s.filter)
	f.ev.Denied = map[string]string{}
	for probe, errno := range f.readyMsg.Denied {
		f.ev.Denied[probe] = errnoName(errno, true)
	}
	findings := deniedFindings(f.readyMsg, f.rec.UID)
	for _, check := range []func() ([]string, error){f.checkProcesses, f.checkInit, f.checkMounts, f.checkDevices, f.checkNetwork} {
		found, err := check()
		if err != nil {
			return err
		}
		findings = append(findings, found...)
	}
	return f.refuse(findings)
}

func (f *filling) checkProcesses() ([]string, error) {
	var out []string
	for who, p := range map[string]*process{"init": f.init, "stub": f.stub} {
		st, err := p.status()
		if err != nil {
			return nil, err
		}
		out = append(out, processFindings(who, st, f.rec.UID)...)
		if who == "init" {
			f.ev.Init = st.evidence(p.pid)
			if st.last("NSpid") != 1 {
				out = append(out, "init NSpid: want 1 inside, got "+strconv.Quote(st["NSpid"]))
			}
		} else {
			f.ev.Stub = st.evidence(p.pid)
		}
		ns, err := p.namespaces()
		if err != nil {
			return nil, err
		}
		out = append(out, namespaceFindings(who, f.s.hostNS, ns)...)
		f.ev.Namespaces = ns
		more, err := f.checkEach(who, p)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.Sort(out)
	return out, nil
}

// checkEach looks at what init and stub must have in common beside their status.
func (f *filling) checkEach(who string, p *process) ([]string, error) {
	open, err := p.descriptors()
	if err != nil {
		return nil, err
	}
	out := descriptorFindings(who, open)
	text, err := p.read("limits")
	if err != nil {
		return nil, err
	}
	limits, err := parseLimits(text)
	if err != nil {
		return nil, err
	}
	out = append(out, limitFindings(who, f.want, limits)...)
	ours, err := p.executes(f.s.initFile())
	if err != nil {
		return nil, err
	}
	if !ours {
		out = append(out, who+": does not run our sbx-init")
	}
	return out, nil
}

// checkInit looks at what only init has: its environment, its place in the queue of the OOM killer, its LSM label.
func (f *filling) checkInit() ([]string, error) {
	var out []string
	env, err := f.init.environ()
	if err != nil {
		return nil, err
	}
	for _, e := range env {
		if !slices.Contains(initEnv, e) {
			out = append(out, fmt.Sprintf("init environment: unexpected %.80q", e))
		}
	}
	adj, err := f.init.read("oom_score_adj")
	if err != nil {
		return nil, err
	}
	if want := strconv.Itoa(f.want.OomScoreAdj) + "\n"; adj != want {
		out = append(out, fmt.Sprintf("init oom_score_adj: want %q, got %q", want, adj))
	}
	label, err := f.init.read("attr/current")
	switch {
	case !f.s.appArmor:
		f.ev.Notes = append(f.ev.Notes, "the engine has no AppArmor")
	case err != nil:
		return nil, err
	default:
		f.ev.AppArmor = trimLabel(label)
		if f.ev.AppArmor != appArmorProfile+" (enforce)" {
			out = append(out, fmt.Sprintf("init AppArmor: want %s (enforce), got %q", appArmorProfile, f.ev.AppArmor))
		}
	}
	return out, nil
}

func (f *filling) checkMounts() ([]string, error) {
	live, err := f.init.mounts()
	if err != nil {
		return nil, err
	}
	f.ev.Mounts = mountStrings(live)
	// /proc and /sys of a container have what the host's have.
	return mountFindings(f.want, live, exists, f.hardened), nil
}

// checkDevices: version 2 keeps the list in a program that cannot be read; the inspection must do there.
func (f *filling) checkDevices() ([]string, error) {
	if f.s.h.version == 2 {
		f.ev.Notes = append(f.ev.Notes, "cgroup v2: the devices list cannot be read back")
		return nil, nil
	}
	paths, err := f.init.cgroups()
	if err != nil {
		return nil, err
	}
	mount, in := f.s.h.mounts["devices"], paths["devices"]
	if mount == "" || !isCgroupOf(in, f.s.parent, f.rec.ContainerID) {
		return []string{fmt.Sprintf("devices cgroup: init is in %q", in)}, nil
	}
	list, err := readFile(filepath.Join(mount, in, "devices.list"))
	if err != nil {
		return nil, err
	}
	return deviceFindings(list), nil
}

func (f *filling) checkNetwork() ([]string, error) {
	devices, err := f.init.read("net/dev")
	if err != nil {
		return nil, err
	}
	routes, err := f.init.read("net/route")
	return networkFindings(devices, routes), err
}

// split makes the job's cgroup, sets and reads back the limits of both. Where a cgroup of its own is impossible, the
// evidence says so and the job gets a limit on its processes another way.
func (f *filling) split(context.Context) error {
	container, job := containerLimits(f.posture, hostMilliCPUs()), jobLimits(f.posture)
	// What the engine made is looked at before anything of ours is written.
	_, found, err := f.cg.readBack(container, job, knob.ofEngine)
	if err != nil {
		return err
	}
	if err := f.refuse(found); err != nil {
		return err
	}
	if err := f.cg.split(f.stub, job); err != nil {
		f.ev.Notes = append(f.ev.Notes, "one cgroup only: "+err.Error())
		if err := f.cg.unsplit(f.stub); err != nil {
			return fmt.Errorf("cgroups of the slot: %w", err)
		}
	}
	f.ev.TwoCgroups = f.cg.two
	if err := f.setLimits(container, job); err != nil {
		return err
	}
	f.ev.Cgroups = maps.Clone(f.cg.container)
	return nil
}

// setLimits writes both cgroups' limits and believes only what it reads back. With one cgroup alone, on a host where we
// may not write, the engine's own must stand already.
func (sl *Slot) setLimits(container, job limits) error {
	keep := knob.any
	if !sl.cg.two {
		keep = knob.ofEngine
	}
	if err := sl.cg.limit(container, job, keep); err != nil {
		return sl.refuse([]string{"limits: " + err.Error()})
	}
	values, findings, err := sl.cg.readBack(container, job, keep)
	if err != nil {
		return err
	}
	sl.ev.Limits = values
	return sl.refuse(findings)
}
