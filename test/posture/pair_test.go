package posture_test

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func inotifyOfAnother(t *testing.T, w *world) {
	w.take(t, 2)
	first := w.start(t, "--", probeAt, "inotify", "wait")
	if l := find(t, w.awaitLine(t, first, "ready"), "inotify_init1"); l.Errno != "EMFILE" {
		t.Errorf("not exhausted: %+v", l)
	}
	e := w.await(t, w.start(t, "--", probeAt, "inotify"))
	if got, want := find(t, linesOf(e.output), "inotify_init1").Detail, read(t, "/proc/sys/fs/inotify/max_user_instances"); got != want {
		t.Errorf("the other job gets %s instances of %s", got, want)
	}
	w.kill(t, first)
}

// quotasOfAnother: what the kernel counts by user, and pseudo-terminals, which it counts for all containers together.
func quotasOfAnother(t *testing.T, w *world) {
	w.take(t, 2)
	pipes := w.start(t, "--", probeAt, "pipes", "wait")
	lines := w.awaitLine(t, pipes, "ready")
	expect(t, lines, "pipes of 1 MiB", "EPERM")
	if got := find(t, lines, "new pipe").Detail; got != "4096" && got != "8192" {
		t.Errorf("a further pipe of the first job has %s bytes", got)
	}
	e := w.await(t, w.start(t, "--", "sh", "-c", probeAt+" terminals one; "+probeAt+" queues"))
	expect(t, linesOf(e.output), "one terminal", "OK")
	expect(t, linesOf(e.output), "mq_open", "EMFILE")
	e = w.await(t, w.start(t, "--", probeAt, "pipe"))
	if got := find(t, linesOf(e.output), "new pipe").Detail; got != "65536" {
		t.Errorf("a pipe of the other job has %s bytes", got)
	}
	w.kill(t, pipes)

	signals := w.start(t, "--", probeAt, "signals", "wait")
	expect(t, w.awaitLine(t, signals, "ready"), "rt_tgsigqueueinfo", "EAGAIN")
	e = w.await(t, w.start(t, "--", probeAt, "signal"))
	expect(t, linesOf(e.output), "one signal", "OK")
	w.kill(t, signals)

	terminals := w.start(t, "--", "sh", "-c", "for i in 1 2 3 4; do "+probeAt+" terminals wait & done; wait")
	eventually(t, 20*time.Second, "all terminals are taken", func() bool {
		return strings.Count(w.output(t, terminals), `"call":"ready"`) == 4
	})
	e = w.await(t, w.start(t, "--", probeAt, "terminals", "one"))
	expect(t, linesOf(e.output), "one terminal", "OK")
	w.kill(t, terminals)
}

func covertChannel(t *testing.T, w *world) {
	w.take(t, 2)
	first := w.start(t, "--", probeAt, "hold")
	lines := w.awaitLine(t, first, "ready")
	if n, _ := strconv.Atoi(find(t, lines, "flock").Detail); n < 10 {
		t.Errorf("only %d files were locked", n)
	}
	for _, what := range []string{"abstract", "tcp", "shm", "sem", "msg"} {
		expect(t, lines, what, "OK")
	}
	second := linesOf(w.await(t, w.start(t, "--", probeAt, "contact")).output)
	for _, l := range second {
		// The probe's own folder is one mount for both: a workspace two jobs share is a channel, as the docs say.
		if strings.HasPrefix(l.Call, "flock ") && !strings.HasPrefix(l.Call, "flock /mnt/probe") {
			t.Errorf("the other job's lock shows on %s", l.Call)
		}
	}
	for what, want := range map[string]string{
		"abstract": "ECONNREFUSED", "tcp": "ECONNREFUSED", "shm": "ENOENT", "sem": "ENOENT", "msg": "ENOENT", "keyctl": "EPERM",
		"inotify on init's file": "EACCES", "inotify on sbx's file": "EACCES", "after": "OK",
	} {
		l := find(t, second, what)
		if !strings.Contains(l.Errno, want) && !(want == "ECONNREFUSED" && strings.Contains(l.Errno, "connection refused")) {
			t.Errorf("%s: %s, want %s", what, l.Errno, want)
		}
	}
	w.kill(t, first)
}

// setIDFiles: each way is refused inside, and seen from the host no file has such a bit; one that another uid runs
// there runs as that uid.
func setIDFiles(t *testing.T, w *world) {
	w.take(t, 1)
	id := w.start(t, "--", "sh", "-c", probeAt+" setid "+strings.Join(writable, " ")+"; "+probeAt+" ids; sleep 300")
	lines := w.awaitLine(t, id, "groups")
	tried := 0
	for _, l := range of(lines, "setid") {
		tried++
		name, _, _ := strings.Cut(l.Call, " in /")
		switch {
		case l.Detail != "":
			t.Errorf("%s made a %s file", l.Call, l.Detail)
		case name == "mkdir 06755", name == "chown to itself", strings.HasPrefix(name, "program"):
		case strings.HasPrefix(name, "fchmodat2 "), strings.HasPrefix(name, "openat2 "):
			if l.Errno != "ENOSYS" {
				t.Errorf("%s: %s, want ENOSYS", l.Call, l.Errno)
			}
		case l.Errno != "EPERM":
			t.Errorf("%s: %s, want EPERM", l.Call, l.Errno)
		}
	}
	if tried < 4*50 {
		t.Errorf("only %d ways were tried", tried)
	}
	p := w.place(t, id)
	root := filepath.Join("/proc", strconv.Itoa(p.pid), "root")
	files := 0
	for _, dir := range writable {
		err := filepath.WalkDir(root+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			files++
			if info, err := d.Info(); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				t.Errorf("on the host %s is %s", path, info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if files < 60 {
		t.Errorf("the host saw %d files only", files)
	}
	copied := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("cp", "-a", root+"/home/job/program", copied).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	openUp(t, filepath.Dir(copied))
	cmd := exec.Command(copied, "ids")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("running it on the host: %v\n%s", err, out)
	} else if got := find(t, linesOf(string(out)), "uid").Detail; got != "65534 65534 65534" {
		t.Errorf("run by uid 65534 on the host it runs as %s", got)
	}
	w.kill(t, id)
}
