package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKillAndFreezeOnVersion2 runs on the empty unified hierarchy that a host with version 1 has beside it: it has the
// freezer and the kill switch, though no limits.
func TestKillAndFreezeOnVersion2(t *testing.T) {
	mount := "/sys/fs/cgroup/unified"
	if !exists(filepath.Join(mount, "cgroup.procs")) {
		mount = "/sys/fs/cgroup"
	}
	top := filepath.Join(mount, "sandboxd-test-"+strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(filepath.Join(top, jobLeaf), 0o755); err != nil {
		t.Skip(err)
	}
	if !exists(filepath.Join(top, jobLeaf, "cgroup.freeze")) {
		_ = removeCgroup(top)
		t.Skip("no version 2 hierarchy")
	}
	t.Cleanup(func() {
		if err := removeCgroup(top); err != nil {
			t.Error(err)
		}
	})
	c := &cgroups{h: hierarchy{version: 2, mounts: map[string]string{"": mount}}, container: map[string]string{"": top}, two: true}
	cmd := exec.Command("/bin/sh", "-c", "sleep 1000 & sleep 1000 & while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := openProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := writeFile(filepath.Join(top, jobLeaf, "cgroup.procs"), strconv.Itoa(p.pid)); err != nil {
		t.Fatal(err)
	}
	if !c.isMember(p) {
		t.Error("not a member")
	}
	if err := c.freeze(t.Context()); err != nil || !c.frozen() {
		t.Errorf("freeze: %v", err)
	}
	if err := c.killJob(t.Context()); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || !errors.As(err, new(*exec.ExitError)) {
		t.Error(err)
	}
	if pids, err := processesOf(filepath.Join(top, jobLeaf)); err != nil || len(pids) > 0 {
		t.Errorf("%v %v", pids, err)
	}
	if err := c.killJob(t.Context()); err != nil {
		t.Error("killing nothing: ", err)
	}
}

func TestKillOfARemovedCgroupIsDone(t *testing.T) {
	h := hierarchy{version: 1, mounts: map[string]string{"freezer": "/nonexistent", "pids": "/nonexistent"}}
	c := &cgroups{h: h, container: map[string]string{"freezer": "/nonexistent/x", "pids": "/nonexistent/x"}, two: true}
	if err := c.killJob(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.setFrozen(false); err != nil {
		t.Error(err)
	}
}

// TestLimitsAreWrittenInAnyOrder stands in for the kernel with plain files.
func TestLimitsAreWrittenToBothCgroups(t *testing.T) {
	for _, version := range []int{1, 2} {
		dir := t.TempDir()
		h := hierarchy{version: version, mounts: map[string]string{}}
		c := &cgroups{h: h, container: map[string]string{}, two: true}
		for _, controller := range h.controllers() {
			at := filepath.Join(dir, "c"+controller)
			c.container[controller] = at
			if err := os.MkdirAll(filepath.Join(at, jobLeaf), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		job := limits{milliCPUs: 500, memory: 64<<20 + 1, pids: 20}
		container := limits{milliCPUs: 600, memory: 88<<20 + 1, pids: 52}
		for _, tg := range c.targets(container, job) {
			for _, k := range h.knobs(tg.l) {
				if k.mayLack {
					continue
				}
				if err := os.WriteFile(filepath.Join(tg.dir(k.controller), k.file), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := c.limit(container, job, knob.any); err != nil {
			t.Fatal(err)
		}
		values, findings, err := c.readBack(container, job, knob.any)
		if err != nil || len(findings) > 0 {
			t.Fatalf("%v %v", findings, err)
		}
		name := "job memory.max"
		if version == 1 {
			name = "job memory.limit_in_bytes"
		}
		if values[name] != strconv.Itoa(64<<20) {
			t.Errorf("%v", values)
		}
		if _, findings, _ = c.readBack(container, limits{milliCPUs: 500, memory: 32 << 20, pids: 20}, knob.any); len(findings) != 1 {
			t.Errorf("a limit twice as high: %v", findings)
		}
	}
}

// TestHostThatRefusesASecondCgroup: what split did is taken back, and the container's limits need no writing.
func TestHostThatRefusesASecondCgroup(t *testing.T) {
	dir := t.TempDir()
	h := hierarchy{version: 1, mounts: map[string]string{}}
	c := &cgroups{h: h, container: map[string]string{}}
	l := limits{milliCPUs: 500, memory: 64 << 20, pids: 20}
	for _, controller := range h.controllers() {
		c.container[controller] = filepath.Join(dir, controller)
		if err := os.MkdirAll(c.container[controller], 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.container[controller], "cgroup.procs"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range h.knobs(l) {
		if k.ofEngine() {
			if err := os.WriteFile(filepath.Join(c.container[k.controller], k.file), []byte(k.value), 0o400); err != nil {
				t.Fatal(err)
			}
		}
	}
	stub := &process{pid: 4711, fd: -1}
	if err := c.split(stub, l); err == nil { // the new directory of a plain file system has no cgroup.procs
		t.Fatal("split")
	}
	if err := c.unsplit(stub); err != nil || c.two || exists(filepath.Join(dir, "pids", jobLeaf)) {
		t.Fatalf("%v two=%t", err, c.two)
	}
	if text, _ := readFile(filepath.Join(dir, "pids", "cgroup.procs")); text != "4711" {
		t.Errorf("the stub is not back: %q", text)
	}
	sl := &Slot{cg: c}
	if err := sl.setLimits(l, limits{}); err != nil {
		t.Error(err)
	}
	if err := sl.setLimits(limits{milliCPUs: 500, memory: 128 << 20, pids: 20}, limits{}); err != nil {
		t.Error(err) // plain files take it, as a host would where only folders are refused
	}
	if err := c.killJob(t.Context()); !errors.Is(err, ErrNoJobCgroup) {
		t.Error(err)
	}
	if err := c.freeze(t.Context()); !errors.Is(err, ErrNoJobCgroup) {
		t.Error(err)
	}
}

func TestUninterruptibleReadsStates(t *testing.T) {
	if got := uninterruptible([]int{os.Getpid(), 1 << 30}); len(got) != 0 {
		t.Error(got)
	}
}

func TestProcessIsHeldByDescriptor(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := openProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	same, err := sameProcess(p.fd, p.fd)
	if err != nil || !same || !p.alive() {
		t.Errorf("%t %v", same, err)
	}
	if err := p.signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if p.alive() {
		t.Error("alive after its end")
	}
	if _, err := p.status(); err == nil {
		t.Error("read of a process that has ended")
	}
	if same, err := sameProcess(p.fd, p.fd); err == nil && same {
		t.Error("an ended process is the same as anything")
	}
	if _, err := openProcess(0); err == nil {
		t.Error("process 0")
	}
}

func TestThrowawayThreadLeavesOthersAlone(t *testing.T) {
	before, err := os.Readlink("/proc/self/ns/uts")
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		onThrowawayThread(func() {
			if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
				t.Error(err)
			}
			if unix.Gettid() == unix.Getpid() {
				t.Error("on the main thread")
			}
		})
	}
	for range 100 {
		done := make(chan string)
		go func() { s, _ := os.Readlink("/proc/thread-self/ns/uts"); done <- s }()
		if got := <-done; got != before {
			t.Fatalf("a thread in namespace %s, want %s", got, before)
		}
	}
	if after, _ := os.Readlink("/proc/self/ns/uts"); after != before {
		t.Errorf("the main thread is in %s, was in %s", after, before)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := sleep(ctx, time.Hour); !errors.Is(err, cause) {
		t.Error(err)
	}
}
