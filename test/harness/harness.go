// Package harness runs the real daemon, the real sbx and real containers for the tests under test/. A daemon of the
// harness has a state directory, a run directory and a socket of its own, so that tests and an installed daemon never
// meet.
package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BinEnv names the folder with sandboxd, sbx and sbx-init, as `make build` leaves them.
const BinEnv = "SANDBOXD_TEST_BIN"

// startTimeout is how long the daemon may take to listen.
const startTimeout = 30 * time.Second

// Daemon is one running daemon.
type Daemon struct {
	t      testing.TB
	Bin    string // folder of the binaries
	Dir    string // everything of this daemon lies below
	Socket string
	Config string // path of its config file

	state string // its state directory lies below
	cmd   *exec.Cmd
	log   *os.File
	done  chan struct{} // closed when the process ended
}

// Options vary a daemon.
type Options struct {
	Config string   // TOML after the generated sections socket and state
	Engine string   // DOCKER_HOST of the daemon; empty: inherited
	Env    []string // further environment
}

// Bin finds the binaries, or ends the test: without them nothing can be shown.
func Bin(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(BinEnv)
	if dir == "" {
		dir = filepath.Join(repoRoot(t), "bin")
	}
	for _, b := range []string{"sandboxd", "sbx", "sbx-init"} {
		if _, err := os.Stat(filepath.Join(dir, b)); err != nil {
			t.Fatalf("%v; build the programs with 'make build' first", err)
		}
	}
	return dir
}

func repoRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}

// New makes a daemon's folder and starts it; it is stopped and its containers are gone when the test ends.
func New(t testing.TB, o Options) *Daemon {
	t.Helper()
	d := Prepare(t, o)
	d.Start(o.Engine, o.Env...)
	return d
}

// Main runs the tests of a package whose tests share one daemon, and takes that away at the end.
func Main(m *testing.M) {
	code := m.Run()
	if sharedDaemon != nil {
		sharedDaemon.discard()
	}
	os.Exit(code)
}

var (
	sharedOnce   sync.Once
	sharedDaemon *Daemon
)

// Shared is one daemon for all tests of a package that only run jobs, started by the first and stopped by Main. The
// options of the first test count.
func Shared(t testing.TB, o Options) *Daemon {
	t.Helper()
	sharedOnce.Do(func() {
		d := prepare(t, o)
		d.Start(o.Engine, o.Env...)
		sharedDaemon = d
	})
	if sharedDaemon == nil {
		t.Fatal("the shared daemon did not start")
	}
	view := *sharedDaemon
	view.t = t
	return &view
}

// Prepare makes the folder and config of a daemon without starting it.
func Prepare(t testing.TB, o Options) *Daemon {
	t.Helper()
	d := prepare(t, o)
	t.Cleanup(func() {
		d.Stop()
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", d.Log())
		}
		d.discard()
	})
	return d
}

func prepare(t testing.TB, o Options) *Daemon {
	t.Helper()
	// A short path, for a socket's may have 107 bytes; a folder only root can change, for the daemon insists.
	dir, err := os.MkdirTemp("/run", "sbxt-")
	if err != nil {
		t.Fatalf("the tests need root and /run: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	d := &Daemon{t: t, Bin: Bin(t), Dir: dir, Socket: filepath.Join(dir, "s", "sandboxd.sock"), Config: filepath.Join(dir, "config.toml")}
	state, err := os.MkdirTemp("/var/lib", "sbxt-")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[socket]\npath = %q\n[state]\ndir = %q\nrun_dir = %q\n%s", d.Socket, filepath.Join(state, "state"), filepath.Join(dir, "run"), o.Config)
	if err := os.WriteFile(d.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.state = state
	return d
}

// discard stops the daemon and takes away all that was its.
func (d *Daemon) discard() {
	d.Stop()
	d.removeContainers()
	_ = os.RemoveAll(d.Dir)
	_ = os.RemoveAll(d.state)
}

// Start starts the daemon and waits until it listens.
func (d *Daemon) Start(engine string, env ...string) {
	d.t.Helper()
	if err := d.TryStart(engine, env...); err != nil {
		d.t.Fatalf("%v; its log:\n%s", err, d.Log())
	}
}

// TryStart is Start with the error as a value, for daemons that must refuse.
func (d *Daemon) TryStart(engine string, env ...string) error {
	log, err := os.OpenFile(filepath.Join(d.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(d.Bin, "sandboxd"), "--config", d.Config)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(append(os.Environ(), "NO_COLOR=1"), env...)
	if engine != "" {
		cmd.Env = append(cmd.Env, "DOCKER_HOST="+engine)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	d.cmd, d.log, d.done = cmd, log, done
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("unix", d.Socket); err == nil {
			return c.Close()
		}
		select {
		case <-done:
			return fmt.Errorf("the daemon ended with %s", cmd.ProcessState)
		default:
		}
	}
	return errors.New("the daemon does not listen")
}

// Stop ends the daemon with SIGTERM and waits.
func (d *Daemon) Stop() { d.end(syscall.SIGTERM) }

// Kill ends the daemon with SIGKILL and waits.
func (d *Daemon) Kill() { d.end(syscall.SIGKILL) }

func (d *Daemon) end(s syscall.Signal) {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Signal(s)
	select {
	case <-d.done:
	case <-time.After(60 * time.Second):
		_ = d.cmd.Process.Kill()
		<-d.done
		d.t.Errorf("the daemon did not stop within 60 s of %v", s)
	}
	_ = d.log.Close()
	d.cmd = nil
}

// Exits reports whether the daemon ends by itself within the time.
func (d *Daemon) Exits(within time.Duration) bool {
	select {
	case <-d.done:
		return true
	case <-time.After(within):
		return false
	}
}

// Pid is the daemon's process id.
func (d *Daemon) Pid() int { return d.cmd.Process.Pid }

// Log returns what the daemon has logged.
func (d *Daemon) Log() string {
	b, _ := os.ReadFile(filepath.Join(d.Dir, "log"))
	return string(b)
}

// Output is how a command ended.
type Output struct {
	Stdout, Stderr string
	Code           int
}

// Sbx runs sbx against this daemon.
func (d *Daemon) Sbx(args ...string) Output {
	d.t.Helper()
	return d.SbxIn(nil, args...)
}

// SbxIn runs sbx with a standard input.
func (d *Daemon) SbxIn(stdin io.Reader, args ...string) Output {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := d.Command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatalf("sbx %q: %v", args, err)
	}
	return Output{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// Command is an sbx command for this daemon, not started.
func (d *Daemon) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(d.Bin, "sbx"), args...)
	cmd.Env = append(os.Environ(), "SANDBOXD_SOCKET="+d.Socket, "NO_COLOR=1")
	return cmd
}

// Must is Sbx for commands that must exit 0.
func (d *Daemon) Must(args ...string) Output {
	d.t.Helper()
	o := d.Sbx(args...)
	if o.Code != 0 {
		d.t.Fatalf("sbx %q exited %d\nstdout: %s\nstderr: %s", args, o.Code, o.Stdout, o.Stderr)
	}
	return o
}

// JSON runs sbx and decodes its standard output into v.
func (d *Daemon) JSON(v any, args ...string) Output {
	d.t.Helper()
	o := d.Sbx(args...)
	if err := json.Unmarshal([]byte(o.Stdout), v); err != nil {
		d.t.Fatalf("sbx %q: %v\nstdout: %s\nstderr: %s", args, err, o.Stdout, o.Stderr)
	}
	return o
}

// HTTP is a client of the daemon's socket; the host of a URL does not matter.
func (d *Daemon) HTTP() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", d.Socket)
	}}}
}

// Instance is the daemon's id, as on the labels of its containers.
func (d *Daemon) Instance() string {
	d.t.Helper()
	var v struct{ Instance string }
	res, err := d.HTTP().Get("http://sandboxd/v1/version")
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		d.t.Fatal(err)
	}
	return v.Instance
}

// Containers lists the ids of all containers, in any state, whose init lies in this daemon's run directory.
func (d *Daemon) Containers() []string {
	d.t.Helper()
	out, err := exec.Command("docker", "ps", "-aq", "--no-trunc", "--filter", "label=sandboxd.instance").Output()
	if err != nil {
		d.t.Fatalf("docker ps: %v", err)
	}
	var mine []string
	for _, id := range strings.Fields(string(out)) {
		mounts, err := exec.Command("docker", "inspect", "-f", "{{range .Mounts}}{{.Source}} {{end}}", id).Output()
		if err == nil && strings.Contains(string(mounts), d.Dir+"/") {
			mine = append(mine, id)
		}
	}
	return mine
}

func (d *Daemon) removeContainers() {
	for _, id := range d.Containers() {
		_ = exec.Command("docker", "rm", "-f", id).Run()
	}
}

// Post sends a body to the daemon's API, decodes the reply into v and returns the status.
func (d *Daemon) Post(path, body string, v any) int {
	d.t.Helper()
	res, err := d.HTTP().Post("http://sandboxd"+path, "application/json", strings.NewReader(body))
	if err != nil {
		d.t.Fatalf("POST %s: %v", path, err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(v); err != nil {
		d.t.Fatalf("POST %s: %s: %v", path, res.Status, err)
	}
	return res.StatusCode
}

// Docker runs the engine's own client, for what only somebody outside does.
func Docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// Twin is a second daemon on the same state directory, with a socket and a run directory of its own. It is not started.
func (d *Daemon) Twin() *Daemon {
	d.t.Helper()
	twin := prepare(d.t, Options{})
	b, err := os.ReadFile(twin.Config)
	if err != nil {
		d.t.Fatal(err)
	}
	text := strings.Replace(string(b), twin.state, d.state, 1)
	if err := os.WriteFile(twin.Config, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(twin.discard)
	return twin
}
