package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// status says each field of /proc/self/status.
func status([]string) {
	text, err := os.ReadFile("/proc/self/status")
	must(err)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		say(name, "OK", strings.TrimSpace(value))
	}
}

func ids([]string) {
	r, e, s := unix.Getresuid()
	say("uid", "OK", fmt.Sprint(r, e, s))
	r, e, s = unix.Getresgid()
	say("gid", "OK", fmt.Sprint(r, e, s))
	groups, err := unix.Getgroups()
	sayErr("groups", err, strings.Trim(fmt.Sprint(groups), "[]"))
}

func env([]string) {
	for _, e := range os.Environ() {
		name, value, _ := strings.Cut(e, "=")
		say(name, "OK", value)
	}
	dir, err := os.Getwd()
	sayErr("cwd", err, dir)
}

// descriptors says what was open when the probe began, but for the files in which Go's runtime follows its cpu limit.
func descriptors([]string) {
	for fd := range 4096 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if strings.Contains(target, "/cpu.cfs_") || strings.HasSuffix(target, "/cpu.max") || strings.HasPrefix(target, "anon_inode:") {
			continue
		}
		sayErr(strconv.Itoa(fd), err, target)
	}
}

// processes says every process that can be seen, and what can be read of init.
func processes([]string) {
	entries, err := os.ReadDir("/proc")
	must(err)
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		sayErr("process "+e.Name(), err, strings.ReplaceAll(string(text), "\x00", " "))
	}
	for _, name := range []string{"environ", "mem", "maps", "auxv", "io", "stack", "syscall", "pagemap", "fd", "fdinfo", "map_files", "cwd", "root", "exe", "ns/mnt"} {
		path := "/proc/1/" + name
		switch name {
		case "cwd", "root", "exe", "ns/mnt":
			target, err := os.Readlink(path)
			sayErr("init "+name, err, target)
		case "fd", "fdinfo", "map_files":
			_, err := os.ReadDir(path)
			sayErr("init "+name, err, "")
		default:
			_, err := os.ReadFile(path)
			sayErr("init "+name, err, "")
		}
	}
	fd, err := openRaw("/proc/1/mem", unix.O_RDWR, 0)
	sayErr("init mem for writing", err, fmt.Sprint(fd))
}

// clock says the clocks before and after the calls that would set them.
func clock([]string) {
	offset := func() int64 {
		var real, mono unix.Timespec
		must(unix.ClockGettime(unix.CLOCK_REALTIME, &real))
		must(unix.ClockGettime(unix.CLOCK_BOOTTIME, &mono))
		return (real.Nano() - mono.Nano()) / int64(time.Millisecond)
	}
	before := offset()
	past := unix.Timeval{Sec: 1}
	sayErr("settimeofday", unix.Settimeofday(&past), "")
	_, err := unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_OFFSET, Offset: 1000})
	sayErr("adjtimex", err, "")
	_, err = unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_TICK, Tick: 11000})
	sayErr("adjtimex tick", err, "")
	_, err = unix.Adjtimex(&unix.Timex{})
	sayErr("adjtimex read", err, "")
	say("moved", "OK", strconv.FormatInt(offset()-before, 10))
}

// kill1 sends every signal to init and says so afterwards.
func kill1([]string) {
	for n := 1; n <= 64; n++ {
		sayErr("signal "+strconv.Itoa(n), unix.Kill(1, unix.Signal(n)), "")
	}
	time.Sleep(100 * time.Millisecond)
	say("after", "OK", "")
}

// rlimit1 tries to take init's resources away: the kernel asks for the same ids only.
func rlimit1([]string) {
	for name, resource := range map[string]int{"cpu": unix.RLIMIT_CPU, "nofile": unix.RLIMIT_NOFILE, "as": unix.RLIMIT_AS, "data": unix.RLIMIT_DATA} {
		sayErr("prlimit "+name, unix.Prlimit(1, resource, &unix.Rlimit{}, nil), "")
	}
	say("after", "OK", "")
}
