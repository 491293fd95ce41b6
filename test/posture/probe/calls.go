package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Call is one system call. An argument is a number (0x…, 0o…, decimal, negative), or
//
//	s:TEXT     a string
//	fd:PATH    a file opened for reading and writing, made when it is missing; dir:PATH a folder
//	buf:N      N zero bytes
//	u64:A,B,…  memory with these 64-bit words; u32:A,B,… with 32-bit ones
type Call struct {
	Name string   `json:"name"`
	ABI  string   `json:"abi"` // "" native, i386 (int 0x80), x32
	NR   uint64   `json:"nr"`
	Args []string `json:"args"`
}

// killed is said of a call that ended the process or its thread instead of returning.
const killed = "killed"

// calls makes the calls of a file, each in a process of its own.
func calls(args []string) {
	text, err := os.ReadFile(args[0])
	must(err)
	var list []Call
	must(json.Unmarshal(text, &list))
	for _, c := range list {
		text, err := json.Marshal(c)
		must(err)
		cmd := exec.Command("/proc/self/exe", "one", string(text))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
			say(c.Name, killed, w.Signal().String())
			continue
		}
		if err != nil {
			say(c.Name, "failed", err.Error())
			continue
		}
		say(c.Name, strings.TrimSpace(string(out)), "")
	}
}

// one makes a call on a thread of its own and prints what it gave. A filter that kills the thread leaves the process.
func one(args []string) {
	var c Call
	must(json.Unmarshal([]byte(args[0]), &c))
	thread, done := make(chan int, 1), make(chan string, 1)
	go func() {
		runtime.LockOSThread()
		var a [6]uintptr
		for i, text := range c.Args {
			a[i] = argument(text)
		}
		thread <- syscall.Gettid()
		done <- make1(c, a)
	}()
	stat := fmt.Sprintf("/proc/self/task/%d/stat", <-thread)
	for {
		select {
		case gave := <-done:
			fmt.Println(gave)
			return
		case <-time.After(5 * time.Millisecond):
			// The first thread of a process stays as a zombie.
			if text, err := os.ReadFile(stat); err != nil || strings.Contains(string(text), ") Z ") {
				fmt.Println(killed)
				os.Exit(0)
			}
		}
	}
}

func make1(c Call, a [6]uintptr) string {
	switch c.ABI {
	case "i386":
		if v := int32(int80(uintptr(c.NR), a[0], a[1], a[2])); v < 0 && v > -4096 {
			return nameOf(syscall.Errno(-v))
		}
		return "OK"
	case "x32":
		c.NR |= 0x40000000
	}
	r, _, errno := syscall.RawSyscall6(uintptr(c.NR), a[0], a[1], a[2], a[3], a[4], a[5])
	if r == 0 && errno == 0 && forks(c) { // the child of a clone that was let through
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nameOf(errno)
}

func forks(c Call) bool { return strings.Contains(c.Name, "clone") }

// kept keeps what arguments point to.
var kept []any

func argument(text string) uintptr {
	kind, rest, found := strings.Cut(text, ":")
	if !found {
		return number(text)
	}
	switch kind {
	case "s":
		p, err := syscall.BytePtrFromString(rest)
		must(err)
		return uintptr(unsafe.Pointer(p))
	case "fd", "dir":
		flags := syscall.O_RDWR | syscall.O_CREAT
		if kind == "dir" {
			flags = syscall.O_RDONLY | syscall.O_DIRECTORY
		}
		fd, err := openRaw(rest, flags, 0o600)
		must(err)
		return uintptr(fd)
	case "buf":
		return address(make([]byte, number(rest)))
	case "u64", "u32":
		var b []byte
		for word := range strings.SplitSeq(rest, ",") {
			n := uint64(number(word))
			for i := range map[string]int{"u64": 8, "u32": 4}[kind] {
				b = append(b, byte(n>>(8*i)))
			}
		}
		return address(b)
	}
	must(fmt.Errorf("%q is no argument", text))
	return 0
}

func address(b []byte) uintptr {
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

func number(text string) uintptr {
	if strings.HasPrefix(text, "-") {
		n, err := strconv.ParseInt(text, 0, 64)
		must(err)
		return uintptr(n)
	}
	n, err := strconv.ParseUint(text, 0, 64)
	must(err)
	return uintptr(n)
}
