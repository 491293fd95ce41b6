package e2e_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/api"
	"sandboxd/test/harness"
)

// Bad input is refused in one line with the right exit code, and makes nothing.
func TestBadInputIsOneLineAndMakesNothing(t *testing.T) {
	d := daemon(t)
	mine := sharedDir(t)
	closed := filepath.Join(mine, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(mine, "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(mine, "missing")
	before := jobCount(t, d)
	tests := []struct {
		name  string
		args  []string
		exit  int
		names []string
	}{
		{"unknown flag", []string{"run", "--memroy", "1g", "--", "true"}, 2, []string{"memroy", "memory"}},
		{"unknown verb", []string{"rnu"}, 2, []string{"rnu", "run"}},
		{"no command", []string{"run", "--image", tiny}, 2, []string{"command"}},
		{"memory 0", []string{"run", "-m", "0", "--", "true"}, 2, []string{"memory", "0"}},
		{"memory -1", []string{"run", "-m", "-1", "--", "true"}, 2, []string{"memory"}},
		{"memory 1e18", []string{"run", "-m", "1000000000000000000", "--", "true"}, 120, []string{"memory"}},
		{"memory 1e18 as a word", []string{"run", "-m", "1e18", "--", "true"}, 2, []string{"memory"}},
		{"memory below the least", []string{"run", "-m", "1m", "--", "true"}, 120, []string{"memory", "64MiB"}},
		{"cpus 0", []string{"run", "--cpus", "0", "--", "true"}, 2, []string{"cpus"}},
		{"timeout 0", []string{"run", "--timeout", "0", "--", "true"}, 2, []string{"timeout"}},
		{"unknown image", []string{"run", "--image", "nobody/nothing", "--", "true"}, 120, []string{"nobody/nothing", "sandboxd/tiny"}},
		{"unknown profile", []string{"run", "--profile", "nope", "--", "true"}, 120, []string{"nope", "default"}},
		{"missing workspace", []string{"run", "--workspace", missing, "--", "true"}, 120, []string{missing, "does not exist"}},
		{"workspace is a FIFO", []string{"run", "--workspace", fifo, "--", "true"}, 120, []string{"fifo"}},
		{"workspace nobody else may read", []string{"run", "--workspace", closed, "--", "true"}, 120, []string{"0700"}},
		{"workspace /", []string{"run", "--workspace", "/", "--", "true"}, 120, []string{"/"}},
		{"workspace /proc", []string{"run", "--workspace", "/proc", "--", "true"}, 120, []string{"/proc"}},
		{"workspace holds the engine", []string{"run", "--workspace", "/var/lib", "--", "true"}, 120, []string{"/var/lib"}},
		{"mount without name", []string{"run", "-v", mine, "--", "true"}, 2, []string{mine}},
		{"own environment name", []string{"run", "-e", "SANDBOXD_JOB=x", "--", "true"}, 120, []string{"SANDBOXD_JOB"}},
		{"proxy name", []string{"run", "-e", "http_proxy=x", "--", "true"}, 120, []string{"http_proxy"}},
		{"name with a slash", []string{"run", "--name", "a/b", "--", "true"}, 2, []string{"a/b"}},
		{"role of a skill nobody knows is fine, a priority of 12 is not", []string{"run", "--priority", "12", "--", "true"}, 2, []string{"priority", "12"}},
		{"relative workdir", []string{"run", "-w", "src", "--", "true"}, 2, []string{"src"}},
		{"logs of nothing", []string{"logs", "nope"}, 125, []string{"nope", "sbx ps"}},
		{"result of nothing", []string{"result", "ffffffff"}, 125, []string{"ffffffff"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := d.Sbx(tt.args...)
			if o.Code != tt.exit {
				t.Errorf("exit %d, want %d", o.Code, tt.exit)
			}
			oneLine(t, o.Stderr, tt.names...)
			if o.Stdout != "" {
				t.Errorf("stdout %q", o.Stdout)
			}
		})
	}
	if after := jobCount(t, d); after != before {
		t.Errorf("%d jobs were made", after-before)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the missing workspace was made")
	}
}

// What a shell cannot pass comes through the API: NUL in argv, and two megabytes of it.
func TestBadArgvOverTheAPI(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body, code, field string
		status                  int
	}{
		{"NUL", `{"command":["echo","a\u0000b"]}`, "invalid", "command", 400},
		{"2 MB", `{"command":["echo","` + strings.Repeat("x", 2<<20) + `"]}`, "too_large", "command", 413},
		{"unknown field", `{"command":["true"],"comand":1}`, "invalid", "comand", 400},
		{"case twin", `{"command":["true"],"Command":["false"]}`, "invalid", "Command", 400},
		{"duplicate", `{"command":["true"],"command":["false"]}`, "invalid", "command", 400},
		{"memory 0", `{"command":["true"],"limits":{"memory":0}}`, "invalid", "limits.memory", 400},
		{"memory -1", `{"command":["true"],"limits":{"memory":-1}}`, "invalid", "limits.memory", 400},
		{"memory 1e18", `{"command":["true"],"limits":{"memory":1000000000000000000}}`, "not_subset", "", 403},
		{"memory null", `{"command":["true"],"limits":{"memory":null}}`, "invalid", "limits.memory", 400},
		{"fraction of a pid", `{"command":["true"],"limits":{"pids":0.5}}`, "invalid", "limits.pids", 400},
		{"trailing", `{"command":["true"]}{}`, "invalid", "", 400},
		{"no body", ``, "invalid", "", 400},
		{"set-up of the engine", `{"command":["true"],"privileged":true}`, "invalid", "privileged", 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p api.Problem
			status := daemon(t).Post("/v1/jobs", tt.body, &p)
			if status != tt.status || p.Code != tt.code || tt.field != "" && p.Field != tt.field {
				t.Errorf("status %d, problem %+v; want %d %s %s", status, p, tt.status, tt.code, tt.field)
			}
		})
	}
}

func jobCount(t *testing.T, d *harness.Daemon) int {
	t.Helper()
	var jobs []api.Job
	d.JSON(&jobs, "ps", "-a", "--json")
	return len(jobs)
}

func TestNoDaemon(t *testing.T) {
	t.Parallel()
	d := harness.Prepare(t, harness.Options{})
	o := d.Sbx("run", "--", "true")
	if o.Code != 125 {
		t.Errorf("exit %d, want 125", o.Code)
	}
	oneLine(t, o.Stderr, d.Socket, "not running")
	if o := d.Sbx("daemon", "status"); o.Code != 3 {
		t.Errorf("daemon status exits %d, want 3", o.Code)
	}
}

func TestSocketOfAnotherProduct(t *testing.T) {
	t.Parallel()
	d := harness.Prepare(t, harness.Options{})
	if err := os.Mkdir(filepath.Dir(d.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", d.Socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"product":"other"}`)) })}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	o := d.Sbx("run", "--", "true")
	if o.Code != 125 {
		t.Errorf("exit %d, want 125", o.Code)
	}
	oneLine(t, o.Stderr, d.Socket)
	// The daemon does not take a live socket away either.
	if err := d.TryStart(""); err == nil && !d.Exits(10*time.Second) {
		t.Error("a daemon runs on a socket somebody else answers on")
	} else if log := d.Log(); !strings.Contains(log, d.Socket) {
		t.Errorf("log: %s", log)
	}
	if _, err := net.Dial("unix", d.Socket); err != nil {
		t.Errorf("the other's socket is gone: %v", err)
	}
}

func TestBrokenConfigStopsTheDaemonInOneLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ config, names string }{
		"unknown key":   {"[capacity]\nmax_runing = 3\n", "max_running"},
		"zero":          {"[capacity]\nmax_running = 0\n", "capacity.max_running"},
		"wrong type":    {"[images]\nallow = 3\n", "line"},
		"uid range":     {"[slots]\nuid_first = 100000\nuid_count = 65536\n", "subuid"},
		"no such group": {"", "nosuchgroup"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "uid range" {
				if b, err := os.ReadFile("/etc/subuid"); err != nil || !strings.Contains(string(b), "100000") {
					t.Skip("not run: /etc/subuid of this machine has no range at 100000")
				}
			}
			d := harness.Prepare(t, harness.Options{Config: tt.config})
			if name == "no such group" {
				b, _ := os.ReadFile(d.Config)
				text := strings.Replace(string(b), "[state]", "group = \"nosuchgroup\"\n[state]", 1)
				if err := os.WriteFile(d.Config, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.TryStart(""); err == nil {
				t.Fatal("the daemon started")
			}
			if log := d.Log(); !strings.Contains(log, tt.names) {
				t.Errorf("the log does not name %q: %s", tt.names, log)
			}
		})
	}
}

// The engine is away at start: the daemon runs, says so, queues, and runs what waits when it comes. The engine comes
// and goes by a relay on its socket.
func TestEngineAwayAtStart(t *testing.T) {
	t.Parallel()
	relay := harness.NewRelay(t)
	d := harness.New(t, harness.Options{Engine: "unix://" + relay.Path})
	if o := d.Sbx("daemon", "status"); o.Code != 4 || !strings.Contains(o.Stdout+o.Stderr, "engine") {
		t.Errorf("daemon status: %+v", o)
	}
	id := strings.TrimSpace(d.Must("run", "-d", "--image", tiny, "--", "echo", "late").Stdout)
	if out := d.Must("ps", "-a").Stdout; !strings.Contains(out, "queued") {
		t.Errorf("ps: %s", out)
	}
	relay.Up()
	d.Must("wait", id)
	if out := d.Must("logs", id).Stdout; out != "late\n" {
		t.Errorf("logs: %q", out)
	}
	d.Must("daemon", "status")
}
