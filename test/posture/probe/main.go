// Command probe is the job's side of the posture tests: it tries one thing that a job must not be able to do and says,
// as one JSON line a try, what the kernel answered. It judges nothing; the tests do.
//
//	probe NAME [ARG…]
//	probe batch 'NAME ARG…' …     each in a process of its own, since some do not survive
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Line is one try.
type Line struct {
	Probe  string `json:"probe"`
	Call   string `json:"call"`
	Errno  string `json:"errno"` // "OK", the errno's name, or what else happened
	Detail string `json:"detail,omitempty"`
}

// probeTime bounds one probe of a batch.
const probeTime = 60 * time.Second

func probes() map[string]func(args []string) {
	return map[string]func([]string){
		"batch": batch, "calls": calls, "one": one,
		"status": status, "ids": ids, "descriptors": descriptors, "env": env, "processes": processes,
		"read": readAll, "open": openAll, "create": createAll, "cgroup": cgroupWrites, "walk": walk, "overwrite": overwrite,
		"reach": reach, "nodes": nodes, "setid": setid,
		"bytes": fillBytes, "inodes": fillInodes,
		"inotify": inotify, "pipes": pipes, "pipe": pipe, "signals": signals, "signal": signal, "queues": queues, "terminals": terminals,
		"hold": hold, "contact": contact, "kill1": kill1, "rlimit1": rlimit1, "loopback": loopback, "clock": clock, "netlink": netlink,
	}
}

// probing is the name of the probe that runs; constant after main began.
var probing string

func main() {
	runtime.GOMAXPROCS(4) // a thread that a filter kills takes its share along
	if len(os.Args) < 2 || probes()[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: probe NAME [ARG…]")
		os.Exit(2)
	}
	probing = os.Args[1]
	probes()[probing](os.Args[2:])
}

// batch runs probes one after the other.
func batch(args []string) {
	for _, text := range args {
		ctx, stop := context.WithTimeout(context.Background(), probeTime)
		cmd := exec.CommandContext(ctx, "/proc/self/exe", strings.Fields(text)...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			say(text, "failed", err.Error())
		}
		stop()
	}
}

var sayLock sync.Mutex

func say(call, errno, detail string) {
	text, err := json.Marshal(Line{probing, call, errno, strings.ToValidUTF8(detail, "?")})
	must(err)
	sayLock.Lock()
	defer sayLock.Unlock()
	_, err = os.Stdout.Write(append(text, '\n'))
	must(err)
}

func sayErr(call string, err error, detail string) { say(call, nameOf(err), detail) }

// nameOf names what a call gave.
func nameOf(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "OK"
	case errors.As(err, &errno) && errno == 0:
		return "OK"
	case errors.As(err, &errno) && unix.ErrnoName(errno) != "":
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(3)
	}
}

// retry is f again and again while a signal comes between.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// openRaw opens without the runtime's poller, which would have descriptors of its own.
func openRaw(path string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Open(path, flags|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}
