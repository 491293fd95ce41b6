package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"sandboxd/client"
	"sandboxd/client/clienttest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sbx": main})
}

type daemonKey struct{}

// TestSessions plays the sessions in testdata, each with a fake daemon of its own.
func TestSessions(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"daemon": daemonCmd,
			"exits":  exitsCmd,
			"ctrlc":  ctrlcCmd,
			"jobs":   jobsCmd,
			"blocks": blocksCmd,
		},
	})
}

func setUp(env *testscript.Env) error {
	dir, err := os.MkdirTemp("", "sbx") // short enough for a socket
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, "s.sock")
	d, err := clienttest.Start(socket)
	if err != nil {
		return err
	}
	env.Defer(func() {
		d.Close()
		_ = os.RemoveAll(dir)
	})
	env.Values[daemonKey{}] = d
	env.Setenv(client.SocketEnv, socket)
	env.Setenv("SOCKET", socket)
	env.Setenv("TERM", "xterm")
	env.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each sbx otherwise
	return nil
}

func daemonOf(ts *testscript.TestScript) *clienttest.Daemon {
	d, ok := ts.Value(daemonKey{}).(*clienttest.Daemon)
	if !ok {
		ts.Fatalf("no daemon")
	}
	return d
}

// daemonCmd breaks the daemon: daemon stop | start | restart-in MS AWAY-MS | set FAULT [VALUE].
func daemonCmd(ts *testscript.TestScript, _ bool, args []string) {
	d := daemonOf(ts)
	number := func(i int) int {
		if i >= len(args) {
			return 0
		}
		n, err := strconv.Atoi(args[i])
		ts.Check(err)
		return n
	}
	switch args[0] {
	case "stop":
		d.Stop()
	case "start":
		ts.Check(d.Start())
	case "restart-in":
		go func() {
			time.Sleep(time.Duration(number(1)) * time.Millisecond)
			d.Stop()
			time.Sleep(time.Duration(number(2)) * time.Millisecond)
			_ = d.Start()
		}()
	case "set":
		d.Set(func(f *clienttest.Faults) {
			switch args[1] {
			case "foreign":
				f.Product = "othersbx"
			case "engine-down":
				f.EngineDown = true
			case "draining":
				f.Draining = true
			case "cut-submits":
				f.CutSubmits = number(2)
			case "cut-stream":
				f.CutStream = number(2)
			case "queued-for":
				f.QueuedFor = time.Duration(number(2)) * time.Millisecond
			case "put-off":
				f.PutOff = number(2)
			case "no-freezing":
				f.NoFreezing = true
			case "bad-records":
				f.BadRecords = true
			default:
				ts.Fatalf("no fault %q", args[1])
			}
		})
	default:
		ts.Fatalf("daemon %q", args[0])
	}
}

// exitsCmd runs a command and checks its exit code: exits CODE COMMAND [ARG…].
func exitsCmd(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got, err := 0, ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// jobsCmd checks how many jobs the daemon has made.
func jobsCmd(ts *testscript.TestScript, _ bool, args []string) {
	if got := strconv.Itoa(daemonOf(ts).Jobs()); got != args[0] {
		ts.Fatalf("%s jobs, want %s", got, args[0])
	}
}

// blocksCmd checks how many clients have told the daemon so far that they only wait for their job.
func blocksCmd(ts *testscript.TestScript, _ bool, args []string) {
	if got := strconv.Itoa(daemonOf(ts).Blocks()); got != args[0] {
		ts.Fatalf("%s clients, want %s", got, args[0])
	}
}

// ctrlcCmd runs a command, sends it SIGINT N times, each once it has told of the one before, and checks the exit code:
// ctrlc N CODE COMMAND [ARG…]. What it wrote is in the files out and err.
func ctrlcCmd(ts *testscript.TestScript, _ bool, args []string) {
	times, err := strconv.Atoi(args[0])
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[2], args[3:]...)
	cmd.Env = os.Environ()
	for _, name := range []string{client.SocketEnv, "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var out, errs lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ts.Check(cmd.Start())
	until := func(b *lockedBuffer, words string) {
		for !strings.Contains(b.String(), words) && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
	until(&out, "ready\n")
	for i := range times {
		ts.Check(cmd.Process.Signal(syscall.SIGINT))
		until(&errs, []string{"cancelling", "killing"}[min(i, 1)])
	}
	_ = cmd.Wait() // the exit code is compared
	ts.Check(os.WriteFile(ts.MkAbs("out"), []byte(out.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("err"), []byte(errs.String()), 0o600))
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("exit code %s, want %s; stderr: %s", got, args[1], errs.String())
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
