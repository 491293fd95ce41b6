package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one process of a container, held by a descriptor, so that its number cannot come to mean another one
// unseen.
type process struct {
	pid int
	fd  int // pidfd
}

func openProcess(pid int) (*process, error) {
	if pid <= 0 {
		return nil, fmt.Errorf("process %d: %w", pid, unix.ESRCH)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: pidfd_open: %w", pid, err)
	}
	return &process{pid: pid, fd: fd}, nil
}

func (p *process) dup() (*process, error) {
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", p.pid, err)
	}
	return &process{pid: p.pid, fd: fd}, nil
}

func (p *process) close() {
	if p != nil && p.fd >= 0 {
		_ = unix.Close(p.fd)
		p.fd = -1
	}
}

// signal fails with ESRCH when the process has ended and was reaped.
func (p *process) signal(sig unix.Signal) error { return unix.PidfdSendSignal(p.fd, sig, nil, 0) }

// alive is false for a zombie too.
func (p *process) alive() bool {
	poll := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n == 0
		}
	}
}

// read reads a file of /proc/<pid>. The pidfd shows afterwards that it was this process's.
func (p *process) read(name string) (string, error) {
	b, err := os.ReadFile(p.path(name))
	if err == nil && !p.alive() {
		err = unix.ESRCH
	}
	if err != nil {
		return "", fmt.Errorf("process %d: %s: %w", p.pid, name, err)
	}
	return string(b), nil
}

func (p *process) path(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.pid), name)
}

func (p *process) status() (status, error) {
	text, err := p.read("status")
	if err != nil {
		return nil, err
	}
	return parseStatus(text)
}

func (p *process) cgroups() (map[string]string, error) {
	text, err := p.read("cgroup")
	if err != nil {
		return nil, err
	}
	return parseCgroup(text)
}

func (p *process) mounts() ([]mountLine, error) {
	text, err := p.read("mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMountinfo(text)
}

// namespaceKinds that a container must not share with the host.
var namespaceKinds = []string{"cgroup", "ipc", "mnt", "net", "pid", "uts"}

func (p *process) namespaces() (map[string]string, error) {
	out := map[string]string{}
	for _, kind := range namespaceKinds {
		link, err := os.Readlink(p.path("ns/" + kind))
		if err != nil {
			return nil, fmt.Errorf("process %d: namespace: %w", p.pid, err)
		}
		out[kind] = link
	}
	return out, nil
}

// descriptors are the targets of all open descriptors.
func (p *process) descriptors() ([]string, error) {
	entries, err := os.ReadDir(p.path("fd"))
	if err != nil {
		return nil, fmt.Errorf("process %d: descriptors: %w", p.pid, err)
	}
	var out []string
	for _, e := range entries {
		link, err := os.Readlink(p.path("fd/" + e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("process %d: descriptors: %w", p.pid, err)
		}
		out = append(out, link)
	}
	return out, nil
}

// environ is the environment the process was started with.
func (p *process) environ() ([]string, error) {
	text, err := p.read("environ")
	if err != nil || text == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(text, "\x00"), "\x00"), nil
}

// sameFile says whether what the process executes is the file at path.
func (p *process) executes(path string) (bool, error) {
	var exe, want unix.Stat_t
	if err := unix.Stat(p.path("exe"), &exe); err != nil {
		return false, fmt.Errorf("process %d: executable: %w", p.pid, err)
	}
	if err := unix.Stat(path, &want); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return exe.Dev == want.Dev && exe.Ino == want.Ino, nil
}

// threads are the ids of all threads.
func (p *process) threads() ([]int, error) {
	entries, err := os.ReadDir(p.path("task"))
	if err != nil {
		return nil, fmt.Errorf("process %d: threads: %w", p.pid, err)
	}
	var out []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, tid)
		}
	}
	return out, nil
}

// runningUIDs are the real uids of all processes of the host.
func runningUIDs() ([]uint32, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("the host's processes: %w", err)
	}
	var out []uint32
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err != nil {
			continue // it has ended
		}
		s, err := parseStatus(string(text))
		if err != nil {
			return nil, err
		}
		for f := range strings.FieldsSeq(s["Uid"]) {
			if id, err := strconv.ParseUint(f, 10, 32); err == nil {
				out = append(out, uint32(id))
			}
		}
	}
	return out, nil
}
