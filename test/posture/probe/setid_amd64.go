package main

import "golang.org/x/sys/unix"

// oldSetidWays are calls that newer machines do not have.
func oldSetidWays(name func(string) string, bits uintptr) []setidWay {
	return []setidWay{
		{name("chmod"), true, func(p string) error { return raw(unix.SYS_CHMOD, str(p), bits) }},
		{name("creat"), false, func(p string) error { return raw(unix.SYS_CREAT, str(p), bits) }},
		{name("open"), false, func(p string) error { return raw(unix.SYS_OPEN, str(p), unix.O_CREAT|unix.O_WRONLY, bits) }},
		{name("mknod"), false, func(p string) error { return raw(unix.SYS_MKNOD, str(p), unix.S_IFREG|bits, 0) }},
	}
}
