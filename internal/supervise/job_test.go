package supervise_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/wire"
)

func TestHowACommandEndsIsReportedAsItIs(t *testing.T) {
	tests := []struct {
		name         string
		script       string
		code, signal int
		stdout       string
		stderr       string
	}{
		{"success", "exit 0", 0, 0, "", ""},
		{"code", "exit 7", 7, 0, "", ""},
		{"code 255", "exit 255", 255, 0, "", ""},
		{"code 137 is no signal", "exit 137", 137, 0, "", ""},
		{"killed by itself", "kill -9 $$", 0, 9, "", ""},
		{"segmentation fault", "kill -SEGV $$", 0, 11, "", ""},
		{"no newline at the end", `printf 'a\nend'`, 0, 0, "a\nend", ""},
		{"both streams", "echo out; echo err >&2", 0, 0, "out\n", "err\n"},
		{"any bytes", `printf '\000\377\033'`, 0, 0, "\x00\xff\x1b", ""},
		{"write to /dev/stdout and tee /dev/stderr", "echo a > /dev/stdout; echo b | tee /dev/stderr", 0, 0, "a\nb\n", "b\n"},
		{"pipe of nobody", "yes | head -1", 0, 0, "y\n", ""},
		{"closed stdout", "exec >&-; exit 3", 3, 0, "", ""},
		{"stdin is empty", "cat; echo end", 0, 0, "end\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, e := run(t, shell(tt.script))
			if e.Code != tt.code || e.Signal != tt.signal || e.StartError != nil || e.Cause != "" || e.CutShort {
				t.Errorf("%+v", e)
			}
			if got := d.out[1].String(); got != tt.stdout {
				t.Errorf("stdout %q", got)
			}
			if got := d.out[2].String(); got != tt.stderr {
				t.Errorf("stderr %q", got)
			}
			if d.started == nil || d.started.PID != d.ready.StubPID || e.WallNS <= 0 || e.Rusage.MaxRSSKiB <= 0 {
				t.Errorf("%+v, %+v, ready %+v", d.started, e, d.ready)
			}
		})
	}
}

func TestWhatTheCommandFindsAtItsStart(t *testing.T) {
	m := shell(`ls -l /proc/self/fd | awk '$9 ~ /[0-9]/ && $11 !~ /^\/proc/ {print $9}' | tr '\n' ' '; echo
		umask; pwd; id -u; id -g; id -G
		grep -E '^(SigBlk|SigIgn|NoNewPrivs|CapEff)' /proc/$$/status | tr -d '\t' | tr '\n' ' '; echo
		ps -o pid=,pgid=,sid= -p $$ | tr -s ' ' | sed 's/^ //'
		ulimit -n; ulimit -Hn; ulimit -p; ulimit -c
		readlink /proc/self/fd/0`)
	m.Dir = "/usr"
	m.Nofile, m.Nproc = 777, 4000
	d, e := run(t, m)
	pid := d.ready.StubPID
	want := []string{
		"0 1 2 ", "0022", "/usr", fmt.Sprint(slotUID), fmt.Sprint(slotUID), fmt.Sprint(slotUID),
		"SigBlk:0000000000000000 SigIgn:0000000000000000 CapEff:0000000000000000 NoNewPrivs:1",
		fmt.Sprintf("%d %d %d", pid, pid, pid),
		"777", "777", "4000", "0",
	}
	got := d.out[1].String()
	for _, line := range want {
		if !strings.Contains(got, line+"\n") && !strings.Contains(got, line+" \n") && !sameFields(got, line) {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() {
		t.Logf("%+v\n%s\n%s", e, got, d.out[2].String())
	}
}

func sameFields(text, line string) bool {
	want := strings.Join(strings.Fields(line), " ")
	for l := range strings.Lines(text) {
		if strings.Join(strings.Fields(l), " ") == want {
			return true
		}
	}
	return false
}

func TestACommandThatCannotStartSaysWhy(t *testing.T) {
	dir, err := os.MkdirTemp("", "start-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	plain := write("plain", "#!/bin/sh\n", 0o644)
	noShebang := write("noshebang", "echo hi\n", 0o755)
	badInterpreter := write("interp", "#!/nope/sh\n", 0o755)
	if err := os.Mkdir(filepath.Join(dir, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	with := func(m wire.Start, change func(*wire.Start)) wire.Start { change(&m); return m }
	tests := []struct {
		name  string
		start wire.Start
		op    string
		errno syscall.Errno
		text  string
	}{
		{"not in PATH", command("no-such-command"), wire.OpLookup, syscall.ENOENT, "no-such-command"},
		{"no such path", command("/nope/x"), wire.OpLookup, syscall.ENOENT, "/nope/x"},
		{"path through a file", command("/etc/passwd/x"), wire.OpLookup, syscall.ENOTDIR, ""},
		{"not executable", command(plain), wire.OpExec, syscall.EACCES, "no x permission"},
		{"not executable in PATH", with(command("plain"), func(m *wire.Start) { m.Env = []string{"PATH=" + dir} }), wire.OpExec, syscall.EACCES, ""},
		{"PATH of the job, not of init", with(command("ls"), func(m *wire.Start) { m.Env = []string{"PATH=" + dir} }), wire.OpLookup, syscall.ENOENT, ""},
		{"no #! line", command(noShebang), wire.OpExec, syscall.ENOEXEC, "is not executable"},
		{"missing interpreter", command(badInterpreter), wire.OpExec, syscall.ENOENT, "interpreter"},
		{"a folder", command("/usr"), wire.OpExec, syscall.EISDIR, ""},
		{"in a closed folder", command(dir + "/closed/x"), wire.OpExec, syscall.EACCES, ""},
		{"missing dir", with(shell("true"), func(m *wire.Start) { m.Dir = "/nope" }), wire.OpChdir, syscall.ENOENT, "/nope"},
		{"dir is a file", with(shell("true"), func(m *wire.Start) { m.Dir = "/etc/passwd" }), wire.OpChdir, syscall.ENOTDIR, ""},
		{"closed dir", with(shell("true"), func(m *wire.Start) { m.Dir = dir + "/closed" }), wire.OpChdir, syscall.EACCES, ""},
		{"nofile above the hard limit", with(shell("true"), func(m *wire.Start) { m.Nofile = 1 << 29 }), wire.OpLimit, syscall.EPERM, "nofile"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, e := run(t, tt.start)
			if e.StartError == nil || d.started != nil || e.Code != 0 || e.Signal != 0 || e.WallNS != 0 {
				t.Fatalf("%+v", e)
			}
			if e.StartError.Op != tt.op || e.StartError.Errno != int(tt.errno) || !strings.Contains(e.StartError.Text, tt.text) {
				t.Errorf("%+v", *e.StartError)
			}
		})
	}
}

func TestArgumentsArriveAsTheyAre(t *testing.T) {
	big := strings.Repeat("x", 128<<10-1)
	m := command("/usr/bin/printf", `%s\n`, "", "a b", "\xff\x01", big, big, big)
	d, e := run(t, m)
	if want := "\na b\n\xff\x01\n" + strings.Repeat(big+"\n", 3); e.Code != 0 || d.out[1].String() != want {
		t.Errorf("%+v, %d bytes", e, d.out[1].Len())
	}
}

func TestTheEnvironmentIsTheJobsAlone(t *testing.T) {
	m := command("/usr/bin/env", "-0")
	m.Env = []string{"B=2", "A=b\nc", "\xff=\xfe", "EMPTY="}
	if d, _ := run(t, m); d.out[1].String() != strings.Join(m.Env, "\x00")+"\x00" {
		t.Errorf("%q", d.out[1].String())
	}
}

func TestTheStubTellsWhatItIsDenied(t *testing.T) {
	d := boot(t)
	d.fill()
	if d.ready.UID != slotUID || d.ready.GID != slotUID || d.ready.StubPID < 2 || len(d.ready.Denied) != 5 {
		t.Errorf("%+v", d.ready)
	}
	// No filter here: the calls get through, and each has its own answer.
	if got := d.ready.Denied[wire.ProbeSetuidBit]; got != int(syscall.ENOENT) {
		t.Errorf("chmod_setuid: %v", got)
	}
}

func TestAnEndBeforeAnyStartEndsInit(t *testing.T) {
	d := boot(t)
	d.fill()
	d.send(wire.End{})
	if err := d.gone(); err != nil {
		t.Error(err)
	}
}

func TestACancelBeforeAnyStartIsReported(t *testing.T) {
	d := boot(t)
	d.fill()
	d.send(wire.Cancel{GraceMS: 60_000, Cause: wire.CauseCancel})
	if e := d.finish(); e.StartError == nil || e.StartError.Op != wire.OpStub || e.Cause != wire.CauseCancel {
		t.Errorf("%+v", e)
	}
}
