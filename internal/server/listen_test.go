package server_test

import (
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

// socketDir is a directory that every uid can reach, as /run is.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sbx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("changes owners and users: run as root")
	}
}

func listen(t *testing.T, cfg server.ListenConfig) *server.Socket {
	t.Helper()
	s, err := server.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestListenMakesTheDirectoryAndTheSocket(t *testing.T) {
	needRoot(t)
	path := filepath.Join(socketDir(t), "run", "sandboxd", "sandboxd.sock")
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	s := listen(t, server.ListenConfig{Path: path, GID: new(uint32(1234)), Mode: 0o660})
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
		if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v %v", dir, st.Mode(), err)
		}
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o660 || st.Sys().(*syscall.Stat_t).Gid != 1234 {
		t.Errorf("%v %+v %v", st.Mode(), st.Sys(), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 || left[0].Name() != "sandboxd.sock.lock" {
		t.Errorf("Close leaves %v %v", left, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("again: %v", err)
	}
}

// Whenever the socket can be seen, it has its final group and mode.
func TestThereIsNoMomentWithOtherRights(t *testing.T) {
	needRoot(t)
	path := filepath.Join(socketDir(t), "s.sock")
	var stop atomic.Bool
	var watch sync.WaitGroup
	seen := 0
	watch.Go(func() {
		for !stop.Load() {
			st, err := os.Stat(path)
			if err != nil {
				continue
			}
			if seen++; st.Mode().Perm() != 0o600 || st.Sys().(*syscall.Stat_t).Gid != 4321 {
				t.Errorf("seen with mode %v gid %d", st.Mode(), st.Sys().(*syscall.Stat_t).Gid)
				return
			}
		}
	})
	for range 200 {
		s, err := server.Listen(server.ListenConfig{Path: path, GID: new(uint32(4321)), Mode: 0o600})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	watch.Wait()
	if seen == 0 {
		t.Skip("the socket was never caught in the act")
	}
}

func TestListenRefusals(t *testing.T) {
	needRoot(t)
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, dir string) (path string)
		code    job.Code
		says    string
	}{
		"a relative path": {func(*testing.T, string) string { return "x.sock" }, job.CodeInvalid, "not a clean absolute path"},
		"an unclean path": {func(_ *testing.T, d string) string { return d + "/../x.sock" }, job.CodeInvalid, "not a clean absolute path"},
		"a long path": {func(_ *testing.T, d string) string { return d + "/" + strings.Repeat("x", 107-len(d)) },
			job.CodeInvalid, "at most 107"},
		"a directory all can write": {func(t *testing.T, d string) string { return mkdir(t, d+"/d", 0o777, 0) + "/s" },
			job.CodeForbidden, "run 'chmod go-w"},
		"one the group can write": {func(t *testing.T, d string) string { return mkdir(t, d+"/d", 0o775, 0) + "/s" },
			job.CodeForbidden, "run 'chmod go-w"},
		"a sticky one": {func(t *testing.T, d string) string { return mkdir(t, d+"/d", 0o777|fs.ModeSticky, 0) + "/s" },
			job.CodeForbidden, "can be written by others"},
		"another user's": {func(t *testing.T, d string) string { return mkdir(t, d+"/d", 0o755, 1001) + "/s" },
			job.CodeForbidden, "belongs to uid 1001"},
		"one below another user's": {func(t *testing.T, d string) string {
			mkdir(t, d+"/d", 0o755, 1001)
			return mkdir(t, d+"/d/e", 0o755, 0) + "/s"
		}, job.CodeForbidden, "belongs to uid 1001"},
		"one below a writable one": {func(t *testing.T, d string) string {
			mkdir(t, d+"/d", 0o777, 0)
			return mkdir(t, d+"/d/e", 0o755, 0) + "/s"
		}, job.CodeForbidden, "can be written by others"},
		"a link to a writable one": {func(t *testing.T, d string) string {
			must(t, os.Symlink(mkdir(t, d+"/d", 0o777, 0), d+"/l"))
			return d + "/l/s"
		}, job.CodeForbidden, "can be written by others"},
		"a file for a directory": {func(t *testing.T, d string) string { must(t, os.WriteFile(d+"/f", nil, 0o600)); return d + "/f/s" },
			"", "not a directory"},
		"a foreign file": {func(t *testing.T, d string) string {
			must(t, os.WriteFile(d+"/s", []byte("x"), 0o600))
			return d + "/s"
		},
			job.CodeConflict, "is not a socket"},
		"a link": {func(t *testing.T, d string) string { must(t, os.Symlink("/nowhere", d+"/s")); return d + "/s" },
			job.CodeConflict, "is not a socket"},
		"a live socket": {func(t *testing.T, d string) string {
			l, err := net.Listen("unix", d+"/s")
			must(t, err)
			t.Cleanup(func() { _ = l.Close() })
			return d + "/s"
		}, job.CodeConflict, "somebody answers"},
		"a live socket of another kind": {func(t *testing.T, d string) string {
			c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: d + "/s", Net: "unixgram"})
			must(t, err)
			t.Cleanup(func() { _ = c.Close() })
			return d + "/s"
		}, job.CodeConflict, "may be in use"},
		"a daemon's lock": {func(t *testing.T, d string) string {
			s := listen(t, server.ListenConfig{Path: d + "/s"})
			must(t, os.Remove(d+"/s"))
			_ = s
			return d + "/s"
		}, job.CodeConflict, "another daemon (pid "},
		"a lock that is a link": {func(t *testing.T, d string) string { must(t, os.Symlink("/etc/passwd", d+"/s.lock")); return d + "/s" },
			"", "lock file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := tc.prepare(t, socketDir(t))
			before, _ := os.Lstat(path)
			s, err := server.Listen(server.ListenConfig{Path: path})
			if err == nil {
				_ = s.Close()
				t.Fatal("it listens")
			}
			if tc.code != "" && job.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			if after, _ := os.Lstat(path); before != nil && !os.SameFile(before, after) {
				t.Error("what stood there is gone")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string, mode fs.FileMode, owner int) string {
	t.Helper()
	must(t, os.Mkdir(path, 0o700))
	must(t, os.Chmod(path, mode))
	must(t, os.Chown(path, owner, 0))
	return path
}

// A socket and a private directory left by a daemon that died are taken over.
func TestAStaleSocketIsReplaced(t *testing.T) {
	needRoot(t)
	dir := socketDir(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/s", Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
	mkdir(t, dir+"/.s.new", 0o700, 0)
	must(t, os.WriteFile(dir+"/.s.new/s", nil, 0o600))
	must(t, os.WriteFile(dir+"/s.lock", []byte("999999\n"), 0o600))
	s := listen(t, server.ListenConfig{Path: dir + "/s"})
	c, err := net.Dial("unix", dir+"/s")
	must(t, err)
	defer c.Close()
	got, err := s.Accept()
	must(t, err)
	defer got.Close()
	if caller := got.(server.Caller).Caller(); caller.Principal != "uid:0" || !caller.Admin || caller.PID != int32(os.Getpid()) {
		t.Errorf("%+v", caller)
	}
	if _, err := os.Stat(dir + "/.s.new"); !os.IsNotExist(err) {
		t.Errorf("the private directory is left: %v", err)
	}
}

// What took the place of our socket is not ours to remove.
func TestCloseRemovesItsOwnSocketOnly(t *testing.T) {
	needRoot(t)
	dir := socketDir(t)
	s := listen(t, server.ListenConfig{Path: dir + "/s"})
	must(t, os.Remove(dir+"/s"))
	must(t, os.WriteFile(dir+"/s", []byte("another's"), 0o600))
	must(t, s.Close())
	if b, err := os.ReadFile(dir + "/s"); string(b) != "another's" {
		t.Errorf("%q %v", b, err)
	}
}

// The kernel's word for who connects, with all groups and more of them than fit at first.
func TestPeerCredentials(t *testing.T) {
	needRoot(t)
	dir := socketDir(t)
	many := make([]uint32, 500)
	for i := range many {
		many[i] = uint32(3000 + i)
	}
	s := listen(t, server.ListenConfig{Path: dir + "/s", Mode: 0o666, AdminGID: new(uint32(3499))})
	for name, tc := range map[string]struct {
		cred  syscall.Credential
		admin bool
	}{
		"a user":            {syscall.Credential{Uid: 1001, Gid: 1002, Groups: []uint32{5, 6}}, false},
		"many groups":       {syscall.Credential{Uid: 1001, Gid: 1002, Groups: many}, true},
		"the primary group": {syscall.Credential{Uid: 1001, Gid: 3499}, true},
		"root":              {syscall.Credential{Uid: 0, Gid: 0}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("curl", "-s", "--max-time", "5", "--unix-socket", dir+"/s", "http://x/")
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &tc.cred}
			must(t, cmd.Start())
			c, err := s.Accept()
			must(t, err)
			got := c.(server.Caller).Caller()
			if got.UID != tc.cred.Uid || got.GID != tc.cred.Gid || len(got.Groups) != len(tc.cred.Groups) || got.Admin != tc.admin || got.PID != int32(cmd.Process.Pid) {
				t.Errorf("%+v", got)
			}
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			must(t, c.Close())
			_ = cmd.Wait()
		})
	}
}
