package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/client"
	"sandboxd/client/clienttest"
)

func TestSocketThatCannotBeUsedSaysWhy(t *testing.T) {
	serve := func(answer string) func(*testing.T, string) {
		return func(t *testing.T, socket string) { rawServer(t, socket, answer) }
	}
	fake := func(product string) func(*testing.T, string) {
		return func(t *testing.T, socket string) {
			d, err := clienttest.Start(socket)
			if err != nil {
				t.Fatal(err)
			}
			d.Set(func(f *clienttest.Faults) { f.Product, f.Garbage = product, product == "garbage" })
			t.Cleanup(d.Close)
		}
	}
	tests := []struct {
		name  string
		setUp func(*testing.T, string)
		kind  error
		words string
	}{
		{"nothing there", func(*testing.T, string) {}, client.ErrNoDaemon, "the daemon is not running: there is no socket"},
		{"nobody listens", abandonedSocket, client.ErrNoDaemon, "nothing listens on"},
		{"another product", fake("otherd"), client.ErrForeign, `belongs to "otherd", not to sandboxd`},
		{"a web server", fake("garbage"), client.ErrForeign, "is not sandboxd"},
		{"not HTTP", serve("SSH-2.0-OpenSSH_9.2\r\n"), client.ErrForeign, "does not speak HTTP"},
		{"closes at once", serve(""), client.ErrLost, "was lost"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			socket := socketPath(t)
			tt.setUp(t, socket)
			c := client.New(client.Options{Socket: socket})
			defer c.Close()
			_, err := c.Job(within(t), "0191")
			var se *client.SocketError
			if !errors.Is(err, tt.kind) || !errors.As(err, &se) {
				t.Fatalf("error is %v, want kind %v", err, tt.kind)
			}
			if !strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), socket) || se.Hint == "" {
				t.Errorf("error is %q (hint %q), want it to name the socket and say %q", err, se.Hint, tt.words)
			}
		})
	}
}

func TestSocketPathThatIsTooLong(t *testing.T) {
	c := client.New(client.Options{Socket: "/tmp/" + strings.Repeat("x", 200)})
	defer c.Close()
	if _, err := c.Health(within(t)); !errors.Is(err, client.ErrNoDaemon) || !strings.Contains(err.Error(), "at most 107") {
		t.Errorf("error is %v", err)
	}
}

func TestSocketComesFromOptionThenEnvironmentThenDefault(t *testing.T) {
	t.Setenv(client.SocketEnv, "")
	if got := client.New(client.Options{}).Socket(); got != client.DefaultSocket {
		t.Errorf("default is %q", got)
	}
	t.Setenv(client.SocketEnv, "/env.sock")
	if got := client.New(client.Options{}).Socket(); got != "/env.sock" {
		t.Errorf("from the environment: %q", got)
	}
	if got := client.New(client.Options{Socket: "/o.sock"}).Socket(); got != "/o.sock" {
		t.Errorf("from the option: %q", got)
	}
}

func TestPermissionDeniedNamesGroupAndMode(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	socket := socketPath(t) // in a folder of mode 0700
	d, err := clienttest.Start(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	dir := filepath.Dir(socket)
	tests := []struct {
		name string
		mode os.FileMode
		gid  int
		want []string
	}{
		{"a folder bars the way", 0o700, 0, []string{dir + " has mode 0700 and group root", "'group' under [socket]"}},
		{"the socket's group", 0o755, 60, []string{socket + " has mode 0660 and group games", "usermod -aG games nobody"}},
		{"root's group is not to be joined", 0o755, 0, []string{socket + " has mode 0660 and group root", "'group' under [socket]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, err := range []error{os.Chmod(dir, tt.mode), os.Chown(socket, 0, tt.gid), os.Chmod(socket, 0o660)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(within(t), "/proc/self/exe")
			cmd.Dir = "/"
			cmd.Env = []string{"CLIENT_TEST_AS_NOBODY=" + socket, "GORACE=atexit_sleep_ms=0"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, want := range append(tt.want, "permission=true", "you may not open") {
				if !strings.Contains(string(out), want) {
					t.Errorf("report %q lacks %q", out, want)
				}
			}
		})
	}
}

// reportVersionError runs in a process of another user.
func reportVersionError(socket string) {
	c := client.New(client.Options{Socket: socket})
	_, err := c.Version(context.Background())
	var se *client.SocketError
	if errors.As(err, &se) {
		fmt.Printf("permission=%t %s; %s\n", errors.Is(err, client.ErrPermission), se.Detail, se.Hint)
	}
}

func TestDaemonThatDoesNotAnswerIsGivenUp(t *testing.T) {
	socket := socketPath(t)
	l, err := net.Listen("unix", socket) // connections are taken by the kernel and never read
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client.New(client.Options{Socket: socket})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Health(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want the context's", err)
	}
}

func abandonedSocket(t *testing.T, socket string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
}

// rawServer answers every connection with the same bytes and closes it.
func rawServer(t *testing.T, socket, answer string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
}
