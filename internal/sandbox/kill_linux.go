package sandbox

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Waits of the kill loop: how long one freeze may take before the kill goes on without it, and how often to look.
const (
	freezePatience = 200 * time.Millisecond
	lookEvery      = 2 * time.Millisecond
)

// killJob kills everything in the job's cgroup and returns when it is empty. Nothing is ever killed by a number alone:
// a process is held by a descriptor first and must then still be in the cgroup.
func (c *cgroups) killJob(ctx context.Context) error {
	if !c.two {
		return ErrNoJobCgroup
	}
	_ = writeFile(filepath.Join(c.jobDir(c.memberOf()), "cgroup.kill"), "1") // version 2, kernel 5.14; nothing is lost without it
	// From here no fork can win the race; the job is over, so the limit need not come back.
	_ = writeFile(filepath.Join(c.jobDir(c.pidsOf()), "pids.max"), "0")
	defer func() { _ = c.setFrozen(false) }()
	for round := 0; ; round++ {
		pids, err := processesOf(c.jobDir(c.memberOf()))
		if err != nil || len(pids) == 0 {
			return absentIsFine(err)
		}
		if round > 0 { // where the limit on forks could not be set, they must stand still to be caught
			short, cancel := context.WithTimeout(ctx, freezePatience)
			_ = c.freeze(short) // what sleeps uninterruptibly does not freeze; the others are killed all the same
			cancel()
		}
		c.killMembers()
		_ = c.setFrozen(false) // a frozen process does not die
		if c.waitEmpty(ctx, freezePatience) {
			return nil
		}
		if ctx.Err() != nil {
			return c.stuck(context.Cause(ctx))
		}
	}
}

// memberOf and pidsOf are the controllers whose directory lists the members and bounds their number.
func (c *cgroups) memberOf() string { return c.controller("freezer") }
func (c *cgroups) pidsOf() string   { return c.controller("pids") }

func (c *cgroups) controller(name string) string {
	if c.h.version == 2 {
		return ""
	}
	return name
}

func (c *cgroups) killMembers() {
	pids, _ := processesOf(c.jobDir(c.memberOf()))
	for _, pid := range pids {
		p, err := openProcess(pid)
		if err != nil {
			continue
		}
		if c.isMember(p) {
			_ = p.signal(unix.SIGKILL)
		}
		p.close()
	}
}

// isMember says whether a process is in the job's cgroup, or below it.
func (c *cgroups) isMember(p *process) bool {
	paths, err := readFile(p.path("cgroup"))
	if err != nil {
		return false
	}
	in, err := parseCgroup(paths + "\n")
	if err != nil {
		return false
	}
	controller := c.memberOf()
	at := filepath.Join(c.h.mounts[controller], in[controller])
	return covers(c.jobDir(controller), at)
}

func (c *cgroups) waitEmpty(ctx context.Context, patience time.Duration) bool {
	for end := time.Now().Add(patience); ; {
		pids, err := processesOf(c.jobDir(c.memberOf()))
		if len(pids) == 0 && absentIsFine(err) == nil {
			return true
		}
		if time.Now().After(end) || sleep(ctx, lookEvery) != nil {
			return false
		}
	}
}

// stuck names the processes that SIGKILL does not end, or gives the cause back when there are none of that kind.
func (c *cgroups) stuck(cause error) error {
	pids, _ := processesOf(c.jobDir(c.memberOf()))
	if stuck := uninterruptible(pids); len(stuck) > 0 {
		return &StuckError{Pids: stuck}
	}
	return cause
}

// uninterruptible picks the processes in state D.
func uninterruptible(pids []int) []int {
	var out []int
	for _, pid := range pids {
		text, err := readFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if _, after, ok := strings.Cut(text, ") "); err == nil && ok && strings.HasPrefix(after, "D") {
			out = append(out, pid)
		}
	}
	return out
}

// freeze stops the job's processes and waits until all stand.
func (c *cgroups) freeze(ctx context.Context) error {
	if !c.two {
		return ErrNoJobCgroup
	}
	if err := c.setFrozen(true); err != nil {
		return err
	}
	for !c.frozen() {
		if err := sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
	return nil
}

func (c *cgroups) setFrozen(on bool) error {
	file, value := "freezer.state", "THAWED"
	if on {
		value = "FROZEN"
	}
	if c.h.version == 2 {
		if file, value = "cgroup.freeze", "0"; on {
			value = "1"
		}
	}
	return absentIsFine(writeFile(filepath.Join(c.jobDir(c.memberOf()), file), value))
}

func (c *cgroups) frozen() bool {
	if c.h.version == 2 {
		text, err := readFile(filepath.Join(c.jobDir(""), "cgroup.events"))
		return err != nil || strings.Contains(text+"\n", "frozen 1\n")
	}
	text, err := readFile(filepath.Join(c.jobDir("freezer"), "freezer.state"))
	return err != nil || text == "FROZEN"
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
