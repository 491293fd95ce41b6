package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reach tries to connect to addresses "network/address".
func reach(addresses []string) {
	for _, a := range addresses {
		network, address, _ := strings.Cut(a, "/")
		c, err := net.DialTimeout(network, address, 2*time.Second)
		if err == nil && network == "udp" {
			_, err = c.Write([]byte("x"))
		}
		sayErr(a, err, "")
		if c != nil {
			_ = c.Close()
		}
	}
	var r net.Resolver
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	found, err := r.LookupHost(ctx, "example.com")
	if err != nil {
		say("dns", "failed", err.Error())
	} else {
		say("dns", "OK", fmt.Sprint(found))
	}
	interfaces, err := net.Interfaces()
	var names []string
	for _, i := range interfaces {
		if i.Flags&net.FlagUp != 0 {
			names = append(names, i.Name)
		}
	}
	sayErr("interfaces", err, strings.Join(names, " "))
}

// Well-known places where two jobs could meet.
const (
	meetAbstract = "\x00sandboxd-posture"
	meetPort     = 18444
	meetKey      = 0x5ba7
	lockMost     = 900 // below the limit on descriptors
)

// hold takes everything by which another job could notice this one, says how much, and waits to be killed.
func hold([]string) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(err)
	must(unix.Bind(fd, &unix.SockaddrUnix{Name: meetAbstract}))
	sayErr("abstract", unix.Listen(fd, 8), "")
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", meetPort))
	sayErr("tcp", err, fmt.Sprint(l != nil))
	_, _, errno := syscall.Syscall(unix.SYS_SHMGET, meetKey, 4096, 0o1000|0o666)
	sayErr("shm", errno, "")
	_, _, errno = syscall.Syscall(unix.SYS_SEMGET, meetKey, 1, 0o1000|0o666)
	sayErr("sem", errno, "")
	_, _, errno = syscall.Syscall(unix.SYS_MSGGET, meetKey, 0o1000|0o666, 0)
	sayErr("msg", errno, "")
	locked := 0
	eachFile(func(_ string, fd int) bool {
		if locked == lockMost || unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
			return false
		}
		locked++
		return true
	})
	say("flock", "OK", fmt.Sprint(locked))
	say("ready", "OK", "")
	time.Sleep(time.Hour)
}

// contact looks for what hold left.
func contact([]string) {
	eachFile(func(path string, fd int) bool {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			sayErr("flock "+path, err, "")
		}
		return false
	})
	for name, do := range map[string]func() error{
		"abstract": func() error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			must(err)
			return unix.Connect(fd, &unix.SockaddrUnix{Name: meetAbstract})
		},
		"tcp": func() error { _, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", meetPort)); return err },
		"shm": func() error { return errnoOf(syscall.Syscall(unix.SYS_SHMGET, meetKey, 0, 0)) },
		"sem": func() error { return errnoOf(syscall.Syscall(unix.SYS_SEMGET, meetKey, 0, 0)) },
		"msg": func() error { return errnoOf(syscall.Syscall(unix.SYS_MSGGET, meetKey, 0, 0)) },
		"keyctl": func() error {
			return errnoOf(syscall.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, 0xfffffffc, 1))
		},
		"inotify on init's file": func() error { return watch("/sbx/bin/sbx-init") },
		"inotify on sbx's file":  func() error { return watch("/sbx/bin/sbx") },
	} {
		sayErr(name, do(), "")
	}
	say("after", "OK", "")
}

func errnoOf(_, _ uintptr, errno syscall.Errno) error { return errno }

func watch(path string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	must(err)
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
	return err
}

// loopback opens so many connections to itself, fills the buffers of both sides, says how much went in, and waits.
func loopback(args []string) {
	most, err := strconv.Atoi(args[0])
	must(err)
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	must(err)
	must(unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(unix.Listen(l, 1024))
	address, err := unix.Getsockname(l)
	must(err)
	var ends []int
	var last error
	for len(ends) < 2*most && last == nil {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if last = err; err != nil {
			break
		}
		if last = unix.Connect(fd, address); last != nil {
			break
		}
		other, _, err := unix.Accept(l)
		if last = err; err != nil {
			break
		}
		ends = append(ends, fd, other)
	}
	sayErr("connections", last, fmt.Sprint(len(ends)/2))
	block := make([]byte, 64<<10)
	total := 0
	for round := 0; round < 40; round++ { // buffers grow while they are full
		for _, fd := range ends {
			_ = unix.SetNonblock(fd, true)
			for {
				n, err := unix.Write(fd, block)
				if err != nil {
					break
				}
				total += n
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	say("full", "OK", fmt.Sprint(total))
	time.Sleep(time.Hour)
}
