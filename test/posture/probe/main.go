// Command probe makes system calls from a table, in a container, and says what each gave. It is the job's side of the
// posture tests: `probe FILE` reads a JSON list of calls and writes a JSON list of answers.
package main

import (
	"context"
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

// Call is one system call. An argument is a number (0x…, 0o…, decimal), "s:TEXT" for a string, "fd:PATH" for an open
// file, "buf:N" for N zero bytes.
type Call struct {
	Name string   `json:"name"`
	ABI  string   `json:"abi"` // "" native, i386 (int 0x80), x32
	NR   uint64   `json:"nr"`
	Args []string `json:"args"`
}

// Answer is what a call gave: an errno (0 for success), or how it ended the process.
type Answer struct {
	Name   string `json:"name"`
	Errno  int    `json:"errno"`
	Killed string `json:"killed,omitempty"`
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "one" {
		one(os.Args[2])
		return
	}
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var calls []Call
	check(json.Unmarshal(text, &calls))
	answers := make([]Answer, 0, len(calls))
	for _, c := range calls {
		answers = append(answers, apart(c))
	}
	check(json.NewEncoder(os.Stdout).Encode(answers))
}

// apart makes a call in a process of its own, since it may be killed or change the process.
func apart(c Call) Answer {
	text, err := json.Marshal(c)
	check(err)
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "one", string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if ctx.Err() != nil { // the filter kills the calling thread; the others of a Go process live on
		return Answer{Name: c.Name, Errno: -1, Killed: "thread"}
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Answer{Name: c.Name, Errno: -1, Killed: status.Signal().String()}
	}
	check(err)
	errno, err := strconv.Atoi(strings.TrimSpace(string(out)))
	check(err)
	return Answer{Name: c.Name, Errno: errno}
}

func one(text string) {
	runtime.LockOSThread()
	var c Call
	check(json.Unmarshal([]byte(text), &c))
	var a [6]uintptr
	for i, arg := range c.Args {
		a[i] = argument(arg)
	}
	var errno int
	switch c.ABI {
	case "i386":
		errno = negative(int80(uintptr(c.NR), a[0], a[1], a[2]))
	case "x32":
		_, _, e := syscall.RawSyscall6(uintptr(c.NR|0x40000000), a[0], a[1], a[2], a[3], a[4], a[5])
		errno = int(e)
	default:
		_, _, e := syscall.RawSyscall6(uintptr(c.NR), a[0], a[1], a[2], a[3], a[4], a[5])
		errno = int(e)
	}
	fmt.Println(errno)
}

func negative(r uintptr) int {
	if v := int32(r); v < 0 && v > -4096 {
		return int(-v)
	}
	return 0
}

func argument(text string) uintptr {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "s":
		p, err := syscall.BytePtrFromString(rest)
		check(err)
		return uintptr(unsafe.Pointer(p))
	case "fd":
		f, err := os.OpenFile(rest, os.O_RDWR|os.O_CREATE, 0o600)
		check(err)
		kept = append(kept, f)
		return f.Fd()
	case "dir":
		f, err := os.Open(rest)
		check(err)
		kept = append(kept, f)
		return f.Fd()
	case "buf":
		n, err := strconv.Atoi(rest)
		check(err)
		b := make([]byte, n)
		bufs = append(bufs, b)
		return uintptr(unsafe.Pointer(&b[0]))
	}
	if strings.HasPrefix(text, "-") {
		n, err := strconv.ParseInt(text, 0, 64)
		check(err)
		return uintptr(n)
	}
	n, err := strconv.ParseUint(text, 0, 64)
	check(err)
	return uintptr(n)
}

var (
	kept []*os.File
	bufs [][]byte
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(3)
	}
}
