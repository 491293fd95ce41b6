package posture_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// killWithin is how long the end of a job may take after a kill.
const killWithin = 5 * time.Second

// forkBomb: bounded while it runs, gone soon after a kill, and the one beside it does not notice.
func forkBomb(t *testing.T, w *world) {
	w.take(t, 2)
	id := w.start(t, "--pids", "128", "--timeout", "60s", "--", "sh", "-c", "bomb() { bomb | bomb & }; bomb; exec sleep 60")
	p := w.place(t, id)
	pids := filepath.Join(p.cgroups["pids"], "job/pids.current")
	most := 0
	eventually(t, 20*time.Second, "forks are refused at the limit", func() bool {
		n, _ := strconv.Atoi(read(t, pids))
		most = max(most, n)
		return word(read(t, filepath.Join(p.cgroups["pids"], "job/pids.events")), "max") > 0
	})
	beside := w.await(t, w.start(t, "--", "echo", "fine"))
	if expectEnd(t, beside, "success", ""); beside.output != "fine\n" {
		t.Errorf("the job beside said %q", beside.output)
	}
	for range 10 {
		n, _ := strconv.Atoi(read(t, pids))
		most = max(most, n)
		time.Sleep(20 * time.Millisecond)
	}
	if most > 128 {
		t.Errorf("%d processes at a limit of 128", most)
	}
	if !strings.Contains(w.output(t, id), "Resource temporarily unavailable") && !strings.Contains(w.output(t, id), "can't fork") {
		t.Errorf("no word of a fork that failed: %.300q", w.output(t, id))
	}
	began := time.Now()
	w.kill(t, id)
	e := w.await(t, id)
	if took := time.Since(began); took > killWithin {
		t.Errorf("the kill took %s", took)
	}
	expectEnd(t, e, "cancelled", "by_caller")
	// One core was its share.
	if cpu, wall := *e.Usage.CPUMS, *e.Usage.WallMS; cpu > wall*13/10+200 {
		t.Errorf("%d ms of cpu in %d ms", cpu, wall)
	}
	gone(t, p)
}

// gone: neither container nor processes of a job are left.
func gone(t *testing.T, p place) {
	t.Helper()
	eventually(t, killWithin, "the cgroup and container are gone", func() bool {
		_, err := os.Stat(p.cgroups["pids"])
		return os.IsNotExist(err)
	})
	if err := syscall.Kill(p.init, 0); err == nil {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.init)); err == nil && strings.Contains(string(text), strconv.Itoa(int(p.uid))) {
			t.Errorf("init is left:\n%s", text)
		}
	}
}

const threadsScript = `
import threading, time
n = 0
try:
    while n < 100000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        n += 1
except RuntimeError as e:
    print("threads", n, e, flush=True)
import os
os._exit(0)
`

const zombiesScript = `
import os, time
def until_refused(child):
    n = 0
    try:
        while n < 100000:
            if os.fork() == 0: child()
            n += 1
    except BlockingIOError as e:
        return n, e
    return n, None
n, e = until_refused(lambda: os._exit(0))
print("zombies", n, e, flush=True)
for _ in range(n): os.wait()
def orphan():
    if os.fork() == 0: os._exit(0)
    os._exit(0)
for _ in range(500):
    if os.fork() == 0: orphan()
    os.wait()
time.sleep(0.3)
z = 0
for p in os.listdir("/proc"):
    if p.isdigit():
        try: z += open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError: pass
print("left", z, flush=True)
`

func threadsAndZombies(t *testing.T, w *world) {
	e := w.run(t, "--image", base, "--pids", "200", "--", "python3", "-c", threadsScript)
	expectEnd(t, e, "success", "")
	if n := word(e.output, "threads"); n < 150 || n > 200 {
		t.Errorf("%d threads at a limit of 200: %q", n, e.output)
	}
	e = w.run(t, "--image", base, "--pids", "200", "--", "python3", "-c", zombiesScript)
	expectEnd(t, e, "success", "")
	if n := word(e.output, "zombies"); n < 150 || n > 200 || !strings.Contains(e.output, "Resource temporarily unavailable") {
		t.Errorf("%d zombies at a limit of 200: %q", n, e.output)
	}
	if n := word(e.output, "left"); n != 0 {
		t.Errorf("init left %d zombies", n)
	}
	// Their parent may end without waiting, too: what it leaves dies with the container.
	e = w.run(t, "--image", base, "--pids", "200", "--", "python3", "-c", "import os\nprint('uid', os.getuid(), flush=True)\nfor _ in range(150):\n  if os.fork() == 0: os._exit(0)\n")
	expectEnd(t, e, "success", "")
	uid := fmt.Sprintf("Uid:\t%d\t", word(e.output, "uid"))
	eventually(t, killWithin, "no zombie of it is left on the host", func() bool {
		for _, pid := range zombies() {
			if text, err := os.ReadFile("/proc/" + pid + "/status"); err == nil && strings.Contains(string(text), uid) {
				return false
			}
		}
		return true
	})
}

// zombies of the host.
func zombies() []string {
	var out []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if _, after, ok := strings.Cut(string(text), ") "); err == nil && ok && strings.HasPrefix(after, "Z") {
			out = append(out, filepath.Base(filepath.Dir(path)))
		}
	}
	return out
}

// word is the number behind a word in an output, or −1.
func word(output, name string) int {
	_, after, found := strings.Cut(output, name+" ")
	if f := strings.Fields(after); found && len(f) > 0 {
		if n, err := strconv.Atoi(f[0]); err == nil {
			return n
		}
	}
	return -1
}

const descriptorsScript = `
import os, socket, resource
print("limit", resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)
fds = []
try:
    while True: fds.append(os.open("/dev/null", os.O_RDONLY))
except OSError as e:
    print("open", len(fds), e.strerror, flush=True)
for fd in fds: os.close(fd)
null = os.open("/dev/null", os.O_RDONLY)
flight, pairs = 0, []
try:
    while flight < 100000:
        a, b = socket.socketpair()
        pairs.append((a, b))
        a.setblocking(False)
        try:
            while True:
                socket.send_fds(a, [b"x"], [null] * 100)
                flight += 100
        except BlockingIOError: pass
except OSError as e:
    print("flight", flight, e.errno, e.strerror, flush=True)
`

func descriptorsToTheLimit(t *testing.T, w *world) {
	w.take(t, 1)
	count := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.d.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := count()
	e := w.await(t, w.start(t, "--image", base, "--", "python3", "-c", descriptorsScript))
	expectEnd(t, e, "success", "")
	if n := word(e.output, "open"); n < 1000 || n > 1024 || !strings.Contains(e.output, "Too many open files") {
		t.Errorf("%d open at a limit of 1024: %q", n, e.output)
	}
	if n := word(e.output, "flight"); n < 0 || n > 1300 || !strings.Contains(e.output, "Too many references") {
		t.Errorf("%d in flight at a limit of 1024: %q", n, e.output)
	}
	if after := count(); after > before+40 { // other rows' jobs run beside
		t.Errorf("the daemon has %d descriptors, before it had %d", after, before)
	}
	e = w.await(t, w.start(t, "--nofile", "4096", "--", "sh", "-c", "ulimit -Hn"))
	if expectEnd(t, e, "success", ""); e.output != "4096\n" {
		t.Errorf("--nofile 4096 gives a hard limit of %q", e.output)
	}
}

// A job at twice its memory, by what it is made of.
var memoryHogs = map[string]string{
	"anonymous": "b = bytearray(256 << 20)",
	"memfd":     "import os\nfd = os.memfd_create('x')\nfor _ in range(256): os.write(fd, b'x' * (1 << 20))",
	"shm":       "import mmap\nm = mmap.mmap(-1, 256 << 20)\nfor i in range(0, 256 << 20, 4096): m[i] = 1",
	"pipes":     "import os, fcntl\nfor _ in range(400):\n  r, w = os.pipe()\n  os.set_blocking(w, False)\n  try:\n    while os.write(w, b'x' * 65536): pass\n  except BlockingIOError: pass\nb = bytearray(256 << 20)",
}

func twiceTheMemory(t *testing.T, w *world) {
	w.take(t, 2)
	beside := w.start(t, "--image", base, "-m", "128m", "--", "python3", "-c", "import time\nb = bytearray(32 << 20)\ntime.sleep(6)\nprint('fine', sum(b))")
	for name, script := range memoryHogs {
		e := w.await(t, w.start(t, "--image", base, "-m", "128m", "--", "python3", "-c", script+"\nprint('survived')"))
		if expectEnd(t, e, "error", "oom"); !e.OOMKilled || strings.Contains(e.output, "survived") {
			t.Errorf("%s: %+v %q", name, e.Outcome, e.output)
		}
	}
	if e := w.await(t, beside); e.Status != "success" || e.output != "fine 0\n" {
		t.Errorf("the job beside: %+v %q", e.Outcome, e.output)
	}
}

// inodes: a mount point's own counts as one, and so does the folder the files are in.
func inodes(t *testing.T, w *world) {
	lines := linesOf(w.probe(t, "inodes").output)
	for dir, most := range map[string]int{"/tmp": 65536, "/home/job": 65536, "/out": 65536, "/run": 1024} {
		if l := expect(t, lines, dir, "ENOSPC"); l.Detail != strconv.Itoa(most-2) {
			t.Errorf("%s took %s files, want %d", dir, l.Detail, most-2)
		}
	}
	refusedElsewhere(t, lines)
}

// refusedElsewhere: no other mount point takes a file.
func refusedElsewhere(t *testing.T, lines []line) {
	t.Helper()
	for _, l := range lines {
		switch l.Errno {
		case "EROFS", "ENOENT", "EACCES", "EPERM", "ENOTDIR", "EMFILE":
		case "ENOSPC":
			if l.Call != "/tmp" && l.Call != "/home/job" && l.Call != "/out" && l.Call != "/run" {
				t.Errorf("%s takes files", l.Call)
			}
		default:
			t.Errorf("%s: %s %s", l.Call, l.Errno, l.Detail)
		}
	}
}

func bytesEverywhere(t *testing.T, w *world) {
	w.take(t, 1)
	e := w.await(t, w.start(t, "--tmp-size", "64m", "--home-size", "96m", "--out-size", "32m", "--", probeAt, "bytes", "keep"))
	lines := linesOf(e.output)
	for dir, most := range map[string]int{"/tmp": 64 * mib, "/home/job": 96 * mib, "/out": 32 * mib, "/run": mib} {
		if l := expect(t, lines, dir, "ENOSPC"); l.Detail != strconv.Itoa(most) {
			t.Errorf("%s took %s bytes, want %d", dir, l.Detail, most)
		}
	}
	refusedElsewhere(t, lines)
	// All of it was memory: no mount that takes bytes has the host's disk below it.
	for text := range strings.Lines(find(t, w.said(t, "read"), "/proc/self/mountinfo").Detail) {
		own, super, _ := strings.Cut(text, " - ")
		f := strings.Fields(own)
		if options := "," + f[5] + ","; strings.Contains(options, ",rw,") {
			if kind := strings.Fields(super)[0]; kind != "tmpfs" && kind != "proc" && kind != "devpts" && kind != "mqueue" {
				t.Errorf("%s is a writable %s", f[4], kind)
			}
		}
	}
}

// socketMemory is what a job's sockets hold outside of its memory limit: TCP's share, and netlink queues.
func socketMemory(t *testing.T, p place) int64 {
	t.Helper()
	total, err := strconv.ParseInt(read(t, filepath.Join(p.cgroups["memory"], "memory.kmem.tcp.usage_in_bytes")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/netlink", p.init))
	if err != nil {
		return total
	}
	for l := range strings.Lines(string(text)) {
		if f := strings.Fields(l); len(f) > 5 && f[0] != "sk" {
			queued, _ := strconv.ParseInt(f[4], 10, 64)
			total += queued
		}
	}
	return total
}

func loopbackBuffers(t *testing.T, w *world) {
	w.take(t, together) // the host's rate is measured
	before := hostRate(t)
	id := w.start(t, "-m", "64m", "--", probeAt, "loopback", "300")
	p := w.place(t, id)
	limit, err := strconv.ParseInt(read(t, filepath.Join(p.cgroups["memory"], "job/memory.kmem.tcp.limit_in_bytes")), 10, 64)
	if err != nil || limit != 16*mib {
		t.Errorf("the limit of socket buffers is %d (%v), want a quarter of 64 MiB", limit, err)
	}
	lines := w.awaitLine(t, id, "full")
	if l := find(t, lines, "connections"); l.Detail != "300" {
		t.Errorf("connections: %+v", l)
	}
	held, during := socketMemory(t, p), hostRate(t)
	w.kill(t, id)
	t.Logf("300 connections hold %d MiB; the host moves %d MB/s before, %d during", held/mib, before/1e6, during/1e6)
	if held > 64*mib {
		t.Errorf("socket buffers hold %d bytes outside of a memory limit of 64 MiB", held)
	}
	if during < before/3 {
		t.Errorf("the host's loopback went from %d to %d bytes/s", before, during)
	}
}

// hostRate is how fast the host's own loopback moves bytes: the best of three.
func hostRate(t *testing.T) int64 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	best := int64(0)
	for range 3 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return
			}
			defer c.Close()
			b := make([]byte, 64<<10)
			for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		}()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		began, total, b := time.Now(), int64(0), make([]byte, 256<<10)
		for {
			n, err := c.Read(b)
			total += int64(n)
			if err != nil {
				break
			}
		}
		<-done
		_ = c.Close()
		best = max(best, int64(float64(total)/time.Since(began).Seconds()))
	}
	return best
}

// manyLoopbackBuffers: more processes, more connections. A job may fail at it; what must not happen is that the host's
// memory goes to it.
func manyLoopbackBuffers(t *testing.T, w *world) {
	socketFlood(t, w, "for i in 1 2 3 4; do "+probeAt+" loopback 400 & done; wait")
}

func netlinkBuffers(t *testing.T, w *world) {
	socketFlood(t, w, probeAt+" netlink 200")
}

func socketFlood(t *testing.T, w *world, command string) {
	w.take(t, 1)
	id := w.start(t, "-m", "64m", "--timeout", "20s", "--", "sh", "-c", command)
	p := w.place(t, id)
	most := int64(0)
	for deadline := time.Now().Add(8 * time.Second); time.Now().Before(deadline) && w.job(t, id).Outcome == nil; time.Sleep(100 * time.Millisecond) {
		if _, err := os.Stat(p.cgroups["memory"]); err != nil {
			break
		}
		most = max(most, socketMemory(t, p))
		if most > 256*mib {
			break // shown; no need to go on
		}
	}
	over := w.job(t, id).Outcome != nil
	if over {
		if e := w.await(t, id); e.Reason != "oom" || !e.OOMKilled {
			t.Errorf("ended %+v\n%.500s", e.Outcome, e.output)
		}
	}
	w.kill(t, id)
	t.Logf("sockets held %d MiB at most; the job was ended for it: %v", most/mib, over)
	if most > 64*mib && !over {
		t.Errorf("sockets hold %d MiB outside of a memory limit of 64 MiB, and nobody ends the job", most/mib)
	}
}

func signalsToInit(t *testing.T, w *world) {
	e := w.probe(t, "kill1")
	expectEnd(t, e, "success", "")
	expect(t, linesOf(e.output), "after", "OK")
	for n := 1; n <= 64; n++ {
		find(t, linesOf(e.output), fmt.Sprintf("signal %d", n))
	}
}

func tmpfsAndMemory(t *testing.T, w *world) {
	e := w.run(t, "--image", base, "-m", "160m", "--", "sh", "-c", "/mnt/probe/probe bytes keep; exec python3 -c 'b = bytearray(256 << 20)'")
	if expectEnd(t, e, "error", "oom"); !strings.Contains(e.output, "ENOSPC") {
		t.Errorf("%.1000s", e.output)
	}
}

func manySmall(t *testing.T, w *world) {
	e := w.run(t, "--image", base, "-m", "128m", "--", "python3", "-c",
		"import os, time\nfor _ in range(100):\n  if os.fork() == 0:\n    b = bytearray(4 << 20)\n    time.sleep(60)\n    os._exit(0)\nb = bytearray(64 << 20)\ntime.sleep(2)\nos._exit(7)")
	if e.Status != "error" || e.Reason != "oom" || !e.OOMKilled {
		t.Errorf("ended %+v\n%.500s", e.Outcome, e.output)
	}
}

func limitsOfInit(t *testing.T, w *world) {
	e := w.probe(t, "rlimit1")
	if e.Status == "success" && slicesAll(linesOf(e.output), func(l line) bool { return l.Call == "after" || l.Errno == "EPERM" }) {
		return
	}
	t.Errorf("a job can set init's limits: %+v\n%s", e.Outcome, e.output)
}

func slicesAll(lines []line, f func(line) bool) bool {
	for _, l := range lines {
		if !f(l) {
			return false
		}
	}
	return len(lines) > 0
}
