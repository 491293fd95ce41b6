package supervise_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/wire"
)

// These tests run in a container of a real engine, when SANDBOXD_TEST_IMAGE names an image with a static busybox. They
// report figures; -v shows them.

func contained(t *testing.T) *daemon {
	t.Helper()
	image := os.Getenv("SANDBOXD_TEST_IMAGE")
	if image == "" {
		t.Skip("not run: SANDBOXD_TEST_IMAGE is not set")
	}
	d := prepare(t)
	name := "sbx-init-test-" + filepath.Base(filepath.Dir(d.socket))
	from := time.Now()
	args := []string{"create", "--name", name, "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--network", "none", "--user", fmt.Sprintf("%d:%d", slotUID, slotUID), "--log-driver", "none",
		"--memory", "88m", "--memory-swap", "88m", "--pids-limit", "132", "--tmpfs", "/tmp:size=16m,noexec",
		"-v", staticInit(t) + ":/sbx/bin/sbx-init:ro", "-v", filepath.Dir(d.socket) + ":/sbx/slot:ro", "--entrypoint", "/sbx/bin/sbx-init", image}
	docker(t, args...)
	t.Cleanup(func() { docker(t, "rm", "-f", name) })
	created := time.Now()
	docker(t, "start", name)
	d.fill()
	t.Logf("create %v, start to ready %v, denied %v", created.Sub(from), time.Since(created), d.ready.Denied)
	d.container = name
	return d
}

// staticInit is the init that runs in containers. That of the other tests may be built with the race detector, which no
// bare image can load.
func staticInit(t *testing.T) string {
	t.Helper()
	if !raceEnabled {
		return initBinary
	}
	bin := os.Getenv("SANDBOXD_TEST_BIN")
	if bin == "" {
		t.Skip("not run: SANDBOXD_TEST_BIN is not set, and the race detector's init does not run in a container")
	}
	return filepath.Join(bin, "sbx-init")
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Errorf("docker %s: %v: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestContainedJob(t *testing.T) {
	d := contained(t)
	pid := docker(t, "inspect", "-f", "{{.State.Pid}}", d.container)
	t.Log("waiting: ", memory(t, pid))
	m := shell("id; ls -l /proc/self/fd | wc -l; cat /proc/1/environ; echo x > /dev/stdout; sleep 600 & exit 9")
	m.Env = []string{"PATH=/bin"}
	d.send(m)
	d.until(func() bool { return d.exited != nil })
	t.Log("after: ", memory(t, pid))
	d.send(wire.End{})
	if code := docker(t, "wait", d.container); code != "0" {
		t.Errorf("init ends with %s", code)
	}
	if d.exited.Code != 9 || d.exited.LeftKilled != 1 {
		t.Errorf("%+v", *d.exited)
	}
	t.Logf("%s%s", d.out[1].String(), d.out[2].String())
}

func TestContainedThroughput(t *testing.T) {
	d := contained(t)
	pid := docker(t, "inspect", "-f", "{{.State.Pid}}", d.container)
	m := command("/bin/busybox", "dd", "if=/dev/zero", "bs=1M", "count=2048")
	m.Env = []string{"PATH=/bin"}
	d.discard = true
	from := time.Now()
	d.send(m)
	d.until(func() bool { return d.exited != nil })
	t.Logf("%.0f MB/s of output to a peer that discards", float64(d.exited.Stdout.Bytes)/time.Since(from).Seconds()/1e6)
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if f := strings.Fields(string(stat)); err == nil && len(f) > 15 {
		t.Logf("%s; init used %s user and %s system hundredths of a second", memory(t, pid), f[13], f[14])
	}
	d.send(wire.End{})
}

// The 24 MiB that a container has for init must do when everything is full: ring, stdin, pipes, socket.
func TestContainedMemoryAtItsWorst(t *testing.T) {
	d := contained(t)
	m := shell("dd if=/dev/zero bs=64k & dd if=/dev/zero bs=64k >&2 & sleep 600")
	m.Env, m.Stdin = []string{"PATH=/bin"}, true
	big := strings.Repeat("x", 100<<10)
	m.Argv = append(m.Argv, big, big, big, big, big, big, big, big, big)
	d.send(m)
	for sent := 0; sent < wire.StdinWindow; sent += wire.MaxPayload {
		if err := d.conn.SendBytes(wire.TypeStdin, wire.StreamNone, make([]byte, wire.MaxPayload)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second) // nothing is read and nothing acked
	id := docker(t, "inspect", "-f", "{{.Id}}", d.container)
	used, peak := cgroup(t, id, "memory.usage_in_bytes"), cgroup(t, id, "memory.max_usage_in_bytes")
	t.Logf("the whole container with its small job uses %s, at most %s bytes; init alone %s", used, peak,
		memory(t, docker(t, "inspect", "-f", "{{.State.Pid}}", d.container)))
	if len(used) > 8 || used > "25165824" && len(used) == 8 {
		t.Error("more than 24 MiB")
	}
	d.send(wire.End{})
}

func cgroup(t *testing.T, id, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("/sys/fs/cgroup/memory/docker", id, file))
	if err != nil {
		t.Skipf("not run: %v", err)
	}
	return strings.TrimSpace(string(raw))
}

var memoryLines = regexp.MustCompile(`(?m)^(VmHWM|VmRSS|RssAnon|Threads):\s+(.*)$`)

func memory(t *testing.T, pid string) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Error(err)
	}
	return strings.Join(memoryLines.FindAllString(string(raw), -1), ", ")
}
