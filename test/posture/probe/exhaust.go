package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const exhaustMost = 1 << 17

// until repeats f until it fails and says how often it went well.
func until(name string, f func() error) {
	n := 0
	var err error
	for ; n < exhaustMost; n++ {
		if err = f(); err != nil {
			break
		}
	}
	sayErr(name, err, fmt.Sprint(n))
}

// orWait waits to be killed where the last argument says so, with everything still taken.
func orWait(args []string) {
	say("ready", "OK", "")
	if len(args) > 0 && args[len(args)-1] == "wait" {
		time.Sleep(time.Hour)
	}
}

func inotify(args []string) {
	until("inotify_init1", func() error { _, err := unix.InotifyInit1(0); return err })
	orWait(args)
}

// pipes takes pipe pages up to the user's quota and says how large a new pipe still is.
func pipes(args []string) {
	until("pipes of 1 MiB", func() error {
		var p [2]int
		if err := unix.Pipe(p[:]); err != nil {
			return err
		}
		_, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, 1<<20)
		return err
	})
	newPipe()
	orWait(args)
}

func pipe([]string) { newPipe() }

func newPipe() {
	var p [2]int
	must(unix.Pipe(p[:]))
	size, err := unix.FcntlInt(uintptr(p[0]), unix.F_GETPIPE_SZ, 0)
	sayErr("new pipe", err, fmt.Sprint(size))
}

// signals queues real-time signals to this process, which holds them back.
func signals(args []string) {
	queue := queuer()
	until("rt_tgsigqueueinfo", queue)
	orWait(args)
}

func signal([]string) { sayErr("one signal", queuer()(), "") }

func queuer() func() error {
	runtime.LockOSThread()
	var set, old unix.Sigset_t
	set.Val[0] = 1 << (rtSignal - 1)
	must(unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old))
	info := [128]byte{}
	*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
	tid := uintptr(unix.Gettid())
	return func() error {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(os.Getpid()), tid, rtSignal, uintptr(unsafe.Pointer(&info[0])), 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	}
}

const rtSignal = 40

// queues makes POSIX message queues, by call and by file.
func queues(args []string) {
	name := str("probe")
	_, _, errno := unix.RawSyscall6(unix.SYS_MQ_OPEN, name, unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
	sayErr("mq_open", errno, "")
	createAll([]string{"/dev/mqueue/probe", "/dev/shm/probe"})
	orWait(args)
}

// terminals opens pseudo-terminals. Processes that do so together see the limit for a moment before it is reached.
func terminals(args []string) {
	open := func() error { _, err := openRaw("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0); return err }
	if len(args) > 0 && args[0] == "one" {
		sayErr("one terminal", open(), "")
		return
	}
	until("terminals", func() error {
		err := open()
		for range 50 {
			if !errors.Is(err, unix.ENOSPC) {
				break
			}
			time.Sleep(10 * time.Millisecond)
			err = open()
		}
		return err
	})
	orWait(args)
}

// notLooked are trees of very many files that are each container's own by namespace.
var notLooked = []string{"/sys/devices", "/sys/module", "/proc/sys", "/proc/self", "/proc/thread-self"}

// eachFile opens all files it can, the processes in /proc left out, and keeps those of which f says so.
func eachFile(f func(path string, fd int) bool) {
	must(filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if number, found := strings.CutPrefix(path, "/proc/"); slices.Contains(notLooked, path) || found && number[0] <= '9' {
			return fs.SkipDir
		}
		if err != nil || d.Type()&(fs.ModeSymlink|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
			return nil
		}
		fd, err := openRaw(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err == nil && !f(path, fd) {
			_ = unix.Close(fd)
		}
		return nil
	}))
}

// netlink opens sockets, asks each for answers it never reads, and waits.
func netlink(args []string) {
	most, err := strconv.Atoi(args[0])
	must(err)
	ask := make([]byte, 32)
	ask[0], ask[4], ask[6], ask[20] = 32, unix.RTM_GETLINK, unix.NLM_F_REQUEST, 1
	n := 0
	until("netlink", func() error {
		if n++; n > most {
			return unix.EDOM
		}
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<30)
		for range 400 {
			if unix.Sendto(fd, ask, unix.MSG_DONTWAIT, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
				break
			}
		}
		return nil
	})
	orWait([]string{"wait"})
}
