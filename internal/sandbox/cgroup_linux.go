package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroups are a container's cgroup and, below it, the job's. The container's limits are larger by init's share, so that
// nothing a job does to its own limits reaches init.
type cgroups struct {
	h         hierarchy
	container map[string]string // controller → directory
	two       bool              // the job has its own; constant once the slot is ready
}

func (c *cgroups) jobDir(controller string) string {
	if !c.two {
		return c.container[controller]
	}
	return filepath.Join(c.container[controller], jobLeaf)
}

// split makes the job's cgroup with its limits and moves the stub into it.
func (c *cgroups) split(stub *process, l limits) error {
	if c.h.version == 2 {
		if err := c.makeLeaves(); err != nil {
			return err
		}
	}
	for _, controller := range c.h.controllers() {
		err := os.Mkdir(filepath.Join(c.container[controller], jobLeaf), 0o755)
		if err != nil && !errors.Is(err, os.ErrExist) { // two controllers may share a directory
			return fmt.Errorf("cgroup of the job: %w", err)
		}
	}
	c.two = true
	for _, controller := range c.h.controllers() {
		if err := writeFile(filepath.Join(c.jobDir(controller), "cgroup.procs"), strconv.Itoa(stub.pid)); err != nil {
			return fmt.Errorf("moving the stub to the job's cgroup: %w", err)
		}
	}
	return nil
}

// unsplit puts the stub back and takes the leaves away, for a host where only part of split worked.
func (c *cgroups) unsplit(stub *process) error {
	c.two = false
	var bad []error
	for _, controller := range c.h.controllers() {
		home := c.container[controller]
		if c.h.version == 2 && exists(filepath.Join(home, initLeaf)) {
			home = filepath.Join(home, initLeaf)
		}
		bad = append(bad, writeFile(filepath.Join(home, "cgroup.procs"), strconv.Itoa(stub.pid)),
			absentIsFine(unix.Rmdir(filepath.Join(c.container[controller], jobLeaf))))
	}
	return errors.Join(bad...)
}

// makeLeaves is for version 2: processes move to a leaf, then the controllers are given on to the leaves.
func (c *cgroups) makeLeaves() error {
	top := c.container[""]
	leaf := filepath.Join(top, initLeaf)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("cgroup of init: %w", err)
	}
	pids, err := processesOf(top)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := writeFile(filepath.Join(leaf, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("moving init to its cgroup: %w", err)
		}
	}
	if err := writeFile(filepath.Join(top, "cgroup.subtree_control"), "+cpu +memory +pids"); err != nil {
		return fmt.Errorf("giving the controllers on: %w", err)
	}
	return nil
}

// target is one cgroup with the limits it shall have.
type target struct {
	name string // in evidence
	dir  func(controller string) string
	l    limits
}

func (c *cgroups) targets(container, job limits) []target {
	out := []target{{"container", func(controller string) string { return c.container[controller] }, container}}
	if c.two {
		out = append(out, target{"job", c.jobDir, job})
	}
	return out
}

// limit writes the limits of both cgroups, in the files that keep says, where they do not stand already. A child's may
// never be above its parent's and a memory limit never above the one with swap, so what is refused at first is tried
// again after the rest.
func (c *cgroups) limit(container, job limits, keep func(knob) bool) error {
	type setting struct{ path, value string }
	var left []setting
	for _, t := range c.targets(container, job) {
		for _, k := range c.h.knobs(t.l) {
			p := filepath.Join(t.dir(k.controller), k.file)
			now, err := readFile(p)
			if keep(k) && now != k.value && !(k.mayLack && errors.Is(err, os.ErrNotExist)) {
				left = append(left, setting{p, k.value})
			}
		}
	}
	for len(left) > 0 {
		var refused []setting
		var bad error
		for _, s := range left {
			if err := writeFile(s.path, s.value); err != nil {
				refused, bad = append(refused, s), err
			}
		}
		if len(refused) == len(left) {
			return bad
		}
		left = refused
	}
	return nil
}

// readBack compares what the kernel holds with the limits, in the files that keep says, and returns their values for
// the evidence.
func (c *cgroups) readBack(container, job limits, keep func(knob) bool) (values map[string]string, findings []string, err error) {
	values = map[string]string{}
	for _, t := range c.targets(container, job) {
		for _, k := range c.h.knobs(t.l) {
			if !keep(k) {
				continue
			}
			got, err := readFile(filepath.Join(t.dir(k.controller), k.file))
			if errors.Is(err, os.ErrNotExist) && k.mayLack {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			name := t.name + " " + k.file
			if values[name] = got; got != k.value {
				findings = append(findings, fmt.Sprintf("limit %s: want %s, kernel has %s", name, k.value, got))
			}
		}
	}
	return values, findings, nil
}

// processesOf are the processes in a cgroup, those below it not included.
func processesOf(dir string) ([]int, error) {
	text, err := readFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var out []int
	for f := range strings.FieldsSeq(text) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("%s/cgroup.procs: %w", dir, err)
		}
		out = append(out, pid)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// writeFile writes to a file of the kernel in one call.
func writeFile(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func readFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func absentIsFine(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
