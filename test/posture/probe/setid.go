package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers that unix has under other names on some machines, or not at all.
const (
	sysFchmodat2 = 452
	garbage      = 1 << 40 // bits above those the kernel looks at
)

// nodes tries to make device nodes in each folder, and whiteouts.
func nodes(dirs []string) {
	for _, dir := range dirs {
		for _, n := range []struct {
			name string
			mode uint32
			dev  uint64
		}{
			{"block 8:0", unix.S_IFBLK | 0o666, unix.Mkdev(8, 0)}, {"memory 1:1", unix.S_IFCHR | 0o666, unix.Mkdev(1, 1)},
			{"whiteout 0:0", unix.S_IFCHR, 0},
		} {
			path := filepath.Join(dir, "node")
			sayErr(fmt.Sprintf("mknod %s in %s", n.name, dir), unix.Mknod(path, n.mode, int(n.dev)), "")
			fd, err := openRaw(path, unix.O_RDWR, 0)
			sayErr(fmt.Sprintf("open %s in %s", n.name, dir), err, fmt.Sprint(fd))
		}
		from := filepath.Join(dir, "from")
		must(os.WriteFile(from, nil, 0o600))
		sayErr("whiteout by rename in "+dir, unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, from+"2", 4), "")
		must(os.Remove(from))
		fifo := filepath.Join(dir, "fifo")
		sayErr("mkfifo in "+dir, unix.Mkfifo(fifo, 0o600), "")
		_ = os.Remove(fifo)
	}
}

// setid tries all ways to a set-id bit on files in each folder and leaves the files there. Detail is "set-id" where one
// came out.
func setid(dirs []string) {
	for _, dir := range dirs {
		for i, way := range setidWays() {
			path := filepath.Join(dir, fmt.Sprintf("setid-%d", i))
			if way.exists {
				must(os.WriteFile(path, nil, 0o755))
			}
			err := way.do(path)
			detail := ""
			var st unix.Stat_t
			if unix.Lstat(path, &st) == nil && st.Mode&0o6000 != 0 {
				detail = "set-id"
			}
			sayErr(way.name+" in "+dir, err, detail)
		}
		program := filepath.Join(dir, "program")
		text, err := os.ReadFile("/proc/self/exe")
		must(err)
		if err := os.WriteFile(program, text, 0o755); err != nil {
			say("program in "+dir, nameOf(err), "") // a small place
			_ = os.Remove(program)
		}
	}
}

type setidWay struct {
	name   string
	exists bool // the file is there before
	do     func(path string) error
}

func setidWays() []setidWay {
	var out []setidWay
	for _, bits := range []uintptr{0o4755, 0o2755, 0o6755, 0o4755 | garbage, 0o104755} {
		name := func(call string) string { return fmt.Sprintf("%s %#o", call, bits) }
		out = append(out,
			setidWay{name("fchmod"), true, func(p string) error {
				return onFile(p, unix.O_RDWR, func(fd uintptr) error { return raw(unix.SYS_FCHMOD, fd, bits) })
			}},
			setidWay{name("fchmodat"), true, func(p string) error { return raw(unix.SYS_FCHMODAT, at, str(p), bits) }},
			setidWay{name("fchmodat2"), true, func(p string) error { return raw(sysFchmodat2, at, str(p), bits, 0) }},
			setidWay{name("openat"), false, func(p string) error {
				return raw(unix.SYS_OPENAT, at, str(p), unix.O_CREAT|unix.O_WRONLY, bits)
			}},
			setidWay{name("openat with garbage in the flags"), false, func(p string) error {
				return raw(unix.SYS_OPENAT, at, str(p), unix.O_CREAT|unix.O_WRONLY|garbage, bits)
			}},
			setidWay{name("openat2"), false, func(p string) error {
				how := [3]uint64{unix.O_CREAT | unix.O_WRONLY, uint64(bits &^ garbage), 0}
				return raw(unix.SYS_OPENAT2, at, str(p), uintptr(unsafe.Pointer(&how)), 24)
			}},
			setidWay{name("openat O_TMPFILE"), false, func(p string) error { return tmpfile(p, bits) }},
			setidWay{name("mknodat"), false, func(p string) error {
				return raw(unix.SYS_MKNODAT, at, str(p), unix.S_IFREG|bits, 0)
			}},
			setidWay{name("mknodat of type 0"), false, func(p string) error { return raw(unix.SYS_MKNODAT, at, str(p), bits&^unix.S_IFMT, 0) }},
			setidWay{name("fchmod of a bound socket"), false, func(p string) error { return socketMode(p, bits) }},
		)
		out = append(out, oldSetidWays(name, bits)...)
	}
	return append(out,
		// The kernel takes these bits off by itself; what counts is that none comes out.
		setidWay{"mkdir 06755", false, func(p string) error { return raw(unix.SYS_MKDIRAT, at, str(p), 0o6755) }},
		setidWay{"chown to itself", true, func(p string) error { return os.Lchown(p, os.Getuid(), os.Getgid()) }},
		setidWay{"a file capability", true, func(p string) error {
			return unix.Setxattr(p, "security.capability", []byte("\x01\x00\x00\x02\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0)
		}},
	)
}

var at = uintptr(0xffffffffffffff9c) // AT_FDCWD

func raw(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	if nr == unix.SYS_OPENAT || nr == unix.SYS_OPENAT2 {
		_ = unix.Close(int(r))
	}
	return nil
}

func str(s string) uintptr {
	p, err := unix.BytePtrFromString(s)
	must(err)
	kept = append(kept, p)
	return uintptr(unsafe.Pointer(p))
}

func onFile(path string, flags int, do func(fd uintptr) error) error {
	fd, err := openRaw(path, flags, 0)
	must(err)
	defer unix.Close(fd)
	return do(uintptr(fd))
}

func tmpfile(path string, bits uintptr) error {
	r, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, at, str(filepath.Dir(path)), unix.O_TMPFILE|unix.O_WRONLY, bits, 0, 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(r))
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", r), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}

// socketMode gives a socket a mode before it is bound: the kernel makes the file with it.
func socketMode(path string, bits uintptr) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(err)
	defer unix.Close(fd)
	if err := raw(unix.SYS_FCHMOD, uintptr(fd), bits); err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrUnix{Name: strings.TrimSpace(path)})
}
