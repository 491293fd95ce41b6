package callerfs_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sandboxd/internal/callerfs"
)

// TestMain makes the test's own binary the helper, as the daemon's is: the real one, or one that lies.
func TestMain(m *testing.M) {
	if len(os.Args) >= 2 && os.Args[1] == callerfs.HelperArg {
		os.Exit(callerfs.HelperMain())
	}
	if len(os.Args) >= 3 && os.Args[1] == liarArg {
		lie(os.Args[2], os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	root  = uint32(0)
	alice = uint32(71001)
	bob   = uint32(71002)
	crew  = uint32(72001) // a group
)

func caller(uid uint32, groups ...uint32) callerfs.Caller {
	return callerfs.Caller{UID: uid, GID: uid, Groups: groups}
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("takes the rights of several users, so it needs root")
	}
}

// folder makes a folder that everybody may reach, owned by a uid.
func folder(t *testing.T, uid uint32) string {
	t.Helper()
	asRoot(t)
	dir, err := os.MkdirTemp("", "callerfs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own(t, dir, uid, 0o755)
	return dir
}

func own(t *testing.T, path string, uid uint32, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.Lchown(path, int(uid), int(uid)), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string, uid uint32, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	own(t, path, uid, mode)
	return path
}

func write(t *testing.T, path string, uid uint32, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	own(t, path, uid, mode)
	return path
}

func link(t *testing.T, to, at string) string {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
	return at
}

// newOpener makes an opener whose helpers are over when the test is.
func newOpener(t *testing.T, r callerfs.Rules, binary ...string) *callerfs.Opener {
	t.Helper()
	o := callerfs.New(r, binary...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := o.Wait(ctx); err != nil {
			t.Errorf("a helper is left: %v", err)
		}
	})
	return o
}

func opens(t *testing.T, o *callerfs.Opener, c callerfs.Caller, path string) *callerfs.File {
	t.Helper()
	f, err := o.Open(t.Context(), c, path)
	if err != nil {
		t.Fatalf("uid %d opens %s: %v", c.UID, path, err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// refused fails the test unless the path is refused with these words.
func refused(t *testing.T, o *callerfs.Opener, c callerfs.Caller, path, says string) {
	t.Helper()
	f, err := o.Open(t.Context(), c, path)
	if f != nil {
		_ = f.Close()
	}
	var r *callerfs.Refusal
	if !errors.As(err, &r) {
		t.Errorf("uid %d opens %s: %v", c.UID, path, err)
		return
	}
	if !strings.Contains(r.Error(), says) || strings.Contains(r.Error(), "\n") {
		t.Errorf("uid %d opens %s: %q lacks %q", c.UID, path, r.Error(), says)
	}
}

// descriptors counts the open ones of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

const liarArg = "callerfs-liar"

// lie is a helper that does not do as the real one does.
func lie(how string, args []string) {
	c, err := net.FileConn(os.NewFile(3, "socket"))
	if err != nil {
		return
	}
	conn := c.(*net.UnixConn)
	_, _ = conn.Read(make([]byte, 64<<10))
	send := func(text string, fds ...int) { _, _, _ = conn.WriteMsgUnix([]byte(text), unix.UnixRights(fds...), nil) }
	at := func(path string) int {
		fd, _ := unix.Open(path, unix.O_PATH, 0)
		return fd
	}
	switch how {
	case "silent": // ends without a word
	case "garbage":
		send("{", at("/etc"))
	case "nothing":
		_, _ = conn.Write([]byte("{}"))
	case "several":
		send("{}", at("/etc"), at("/usr"))
	case "many":
		send("{}", at("/etc"), at("/usr"), at("/etc"), at("/usr"), at("/etc"), at("/usr"))
	case "refuses and gives":
		send(`{"why":"is not nice"}`, at("/etc"))
	case "fault":
		_, _ = conn.Write([]byte(`{"fault":"setgroups: no"}`))
	case "gives":
		send("{}", at(args[0]))
	case "deleted":
		fd := at(args[0])
		_ = os.Remove(args[0])
		send("{}", fd)
	case "pipe":
		r, _, _ := os.Pipe()
		send("{}", int(r.Fd()))
	case "socket":
		send("{}", 3)
	case "hang":
		_ = os.WriteFile(filepath.Join(args[0], "helper-"+time.Now().Format(time.RFC3339Nano)), nil, 0o600)
		select {}
	}
}

// liar is the argv of such a helper.
func liar(how string, args ...string) []string {
	return append([]string{"/proc/self/exe", liarArg, how}, args...)
}
