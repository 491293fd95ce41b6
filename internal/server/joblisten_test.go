package server_test

import (
	"errors"
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
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/job"
	"sandboxd/internal/server"
)

// slotDir is a directory like that of a slot.
func slotDir(t *testing.T, gid int) string {
	t.Helper()
	dir := filepath.Join(socketDir(t), "slot")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chown(dir, -1, gid))
	must(t, os.Chmod(dir, 0o750))
	return dir
}

func jobCaller() job.Caller {
	return job.JobCaller(job.Job{ID: "01900000-0000-7000-8000-00000000000a", OwnerUID: alice})
}

func TestASocketOfAJobHasItsRightsFromTheBeginning(t *testing.T) {
	needRoot(t)
	dir := slotDir(t, 4321)
	path := filepath.Join(dir, "api.sock")
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	var stop atomic.Bool
	var watch sync.WaitGroup
	seen := 0
	watch.Go(func() {
		for !stop.Load() {
			st, err := os.Stat(path)
			if err != nil {
				continue
			}
			if seen++; st.Mode().Perm() != 0o660 || st.Sys().(*syscall.Stat_t).Gid != 4321 || st.Sys().(*syscall.Stat_t).Uid != 0 {
				t.Errorf("seen with mode %v, %+v", st.Mode(), st.Sys())
				return
			}
		}
	})
	for range 100 {
		s, err := server.ListenJob(server.JobListenConfig{Path: path, GID: 4321, Caller: jobCaller()})
		must(t, err)
		must(t, s.Close())
		must(t, s.Close()) // again
	}
	stop.Store(true)
	watch.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o750 {
		t.Errorf("the slot has mode %v, %v", st.Mode(), err)
	}
	if seen == 0 {
		t.Skip("the socket was never caught in the act")
	}
}

func TestListenJobRefusals(t *testing.T) {
	host := job.HostCaller(alice, alice, nil, 1, false)
	admin := jobCaller()
	admin.Admin = true
	other := jobCaller()
	other.Principal = "uid:0"
	for name, change := range map[string]func(t *testing.T, c *server.JobListenConfig){
		"a host user":       func(_ *testing.T, c *server.JobListenConfig) { c.Caller = host },
		"an admin":          func(_ *testing.T, c *server.JobListenConfig) { c.Caller = admin },
		"another principal": func(_ *testing.T, c *server.JobListenConfig) { c.Caller = other },
		"nobody":            func(_ *testing.T, c *server.JobListenConfig) { c.Caller = job.Caller{} },
		"a relative path":   func(_ *testing.T, c *server.JobListenConfig) { c.Path = "api.sock" },
		"no such slot":      func(_ *testing.T, c *server.JobListenConfig) { c.Path = filepath.Dir(c.Path) + "x/api.sock" },
		"a slot that all can write": func(t *testing.T, c *server.JobListenConfig) {
			must(t, os.Chmod(filepath.Dir(c.Path), 0o777|fs.ModeSticky))
		},
		"a file in its place": func(t *testing.T, c *server.JobListenConfig) { must(t, os.WriteFile(c.Path, nil, 0o600)) },
		"a link in its place": func(t *testing.T, c *server.JobListenConfig) { must(t, os.Symlink("/etc/passwd", c.Path)) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := server.JobListenConfig{Path: filepath.Join(slotDir(t, os.Getgid()), "api.sock"), GID: uint32(os.Getgid()), Caller: jobCaller()}
			change(t, &cfg)
			if s, err := server.ListenJob(cfg); err == nil {
				t.Error("it listens")
				_ = s.Close()
			}
		})
	}
}

// After a daemon that died, the next one takes the place of its socket; the one that is closed later leaves it alone.
func TestASocketOfAJobIsTakenOver(t *testing.T) {
	path := filepath.Join(slotDir(t, os.Getgid()), "api.sock")
	cfg := server.JobListenConfig{Path: path, GID: uint32(os.Getgid()), Caller: jobCaller()}
	before, err := server.ListenJob(cfg)
	must(t, err)
	after, err := server.ListenJob(cfg)
	must(t, err)
	must(t, before.Close())
	c, err := net.Dial("unix", path)
	must(t, err)
	must(t, c.Close())
	must(t, after.Close())
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// Who asks is the job of the socket, whatever user or header says.
func TestTheSocketNamesTheJob(t *testing.T) {
	r := newRig(t)
	j, other := r.daemon.add(0, named("mine")), r.daemon.add(0, named("other"))
	got := r.asJob(j).do("POST", "/v1/jobs", `{"command":["true"]}`, "X-Job", string(other.ID), "Authorization", "Bearer root", "Host", "admin").want(201).job()
	if got.Parent != string(j.ID) || got.Owner != "uid:0" {
		t.Errorf("%+v", got)
	}
	r.asJob(j).get("/v1/jobs/other").problem(404, job.CodeNotFound)
}

func TestAPeerOfAnotherUserIsTurnedAway(t *testing.T) {
	needRoot(t)
	path := filepath.Join(slotDir(t, 0), "api.sock")
	s, err := server.ListenJob(server.JobListenConfig{Path: path, UID: new(uint32(7777)), Caller: jobCaller()})
	must(t, err)
	r := newRig(t)
	r.serve(s)
	c, err := net.Dial("unix", path)
	must(t, err)
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(5*time.Second)))
	_, _ = io.WriteString(c, "GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n")
	if b, err := io.ReadAll(c); len(b) != 0 {
		t.Errorf("answered %.80q, %v", b, err)
	}
}

// A process of the slot's group gets in and one outside it does not.
func TestTheSlotsGroupGetsIn(t *testing.T) {
	needRoot(t)
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl")
	}
	path := filepath.Join(slotDir(t, 7777), "api.sock")
	s, err := server.ListenJob(server.JobListenConfig{Path: path, GID: 7777, UID: new(uint32(7777)), Caller: jobCaller()})
	must(t, err)
	r := newRig(t)
	r.serve(s)
	for id, want := range map[uint32]string{7777: `"product":"sandboxd"`, 7778: ""} {
		cmd := exec.Command(curl, "-s", "--unix-socket", path, "http://x/v1/version")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
		out, _ := cmd.Output() // the exit code follows from the output
		if want == "" && len(out) > 0 || !strings.Contains(string(out), want) {
			t.Errorf("uid %d gets %q", id, out)
		}
	}
}

// Close cuts off what the job still has open, and Serve ends in good order.
func TestTheEndOfAJobEndsItsConnections(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice, func(j *job.Job) { j.State = job.Running })
	path := filepath.Join(slotDir(t, os.Getgid()), "api.sock")
	s, err := server.ListenJob(server.JobListenConfig{Path: path, GID: uint32(os.Getgid()), Caller: job.JobCaller(j)})
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- r.server.Serve(t.Context(), s) }()
	resp := newClient(t, path).begin(t.Context(), "GET", "/v1/events?follow=true", nil)
	defer resp.Body.Close()
	must(t, s.Close())
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the events end as if they were whole")
	}
	eventually(t, "its connections are gone", func() bool { return r.server.OpenConns() == 0 })
	r.as(alice).get("/v1/version").want(200)
}

// Descriptors that a job sends along are closed, never kept.
func TestDescriptorsSentAlongAreClosed(t *testing.T) {
	r := newRig(t)
	j := r.daemon.add(alice)
	c, err := net.Dial("unix", r.inside(j))
	must(t, err)
	defer c.Close()
	in, out, err := os.Pipe()
	must(t, err)
	defer in.Close()
	rights := unix.UnixRights(int(out.Fd()))
	_, _, err = c.(*net.UnixConn).WriteMsgUnix([]byte("GET /v1/version HTTP/1.1\r\nHost: x\r\n\r\n"), rights, nil)
	must(t, err)
	must(t, out.Close())
	must(t, in.SetReadDeadline(time.Now().Add(5*time.Second)))
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the other end is still open: %v", err)
	}
}
