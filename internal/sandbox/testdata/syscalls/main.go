// Command syscalls makes raw system calls from a table inside a job and says what each gave: it reads a JSON list of
// calls from the file it is given and writes a JSON list of answers.
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

// call is one system call. An argument is a number (0x…, decimal, may be negative), "s:TEXT" for a string, "fd:PATH"
// for an open file, "buf:N" for N zero bytes.
type call struct {
	ABI  string // "" native, i386 (int 0x80), x32
	NR   uint64
	Args []string
}

// answer is what a call gave: an errno (0 for success), or how it ended the process.
type answer struct {
	Errno  int
	Killed string
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "one" {
		one(os.Args[2])
		return
	}
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var calls []call
	check(json.Unmarshal(text, &calls))
	answers := make([]answer, 0, len(calls))
	for _, c := range calls {
		answers = append(answers, apart(c))
	}
	check(json.NewEncoder(os.Stdout).Encode(answers))
}

// apart makes a call in a process of its own, since it may be killed or change the process.
func apart(c call) answer {
	text, err := json.Marshal(c)
	check(err)
	cmd := exec.Command("/proc/self/exe", "one", string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return answer{Killed: status.Signal().String()}
	}
	check(err)
	errno, err := strconv.Atoi(strings.TrimSpace(string(out)))
	check(err)
	return answer{Errno: errno}
}

func one(text string) {
	runtime.GOMAXPROCS(4) // a thread that the filter kills takes its share along
	runtime.LockOSThread()
	var c call
	check(json.Unmarshal([]byte(text), &c))
	var a [6]uintptr
	for i, arg := range c.Args {
		a[i] = argument(arg)
	}
	go dieWith(syscall.Gettid())
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

// dieWith ends the process when the thread is gone: a filter may kill the calling thread alone.
func dieWith(tid int) {
	for {
		time.Sleep(10 * time.Millisecond)
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", tid))
		if err != nil || strings.Contains(string(text), "State:\tZ") || strings.Contains(string(text), "State:\tX") {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		}
	}
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
	case "buf":
		n, err := strconv.Atoi(rest)
		check(err)
		b := make([]byte, n)
		kept = append(kept, b)
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

// kept keeps what the kernel is given a pointer to, or a descriptor of.
var kept []any

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "syscalls:", err)
		os.Exit(3)
	}
}
