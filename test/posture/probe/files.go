package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// readAll reads files, and lists folders.
func readAll(paths []string) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			entries, err := os.ReadDir(path)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			sayErr(path, err, strings.Join(names, " "))
			continue
		}
		text, err := readSome(path)
		sayErr(path, err, text)
	}
}

func readSome(path string) (string, error) {
	fd, err := openRaw(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	b := make([]byte, 1<<20)
	n := 0
	for n < len(b) {
		more, err := unix.Read(fd, b[n:])
		if err != nil {
			return string(b[:n]), err
		}
		if more <= 0 {
			break
		}
		n += more
	}
	return string(b[:n]), nil
}

// openAll opens files for writing and writes nothing: on a host without the wall a write would do harm.
func openAll(paths []string) {
	for _, path := range paths {
		fd, err := openRaw(path, unix.O_WRONLY|unix.O_NONBLOCK, 0)
		sayErr(path, err, "")
		if err == nil {
			_ = unix.Close(fd)
		}
	}
}

// createAll makes files and takes them away again.
func createAll(paths []string) {
	for _, path := range paths {
		fd, err := openRaw(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
		sayErr(path, err, "")
		if err == nil {
			_ = unix.Close(fd)
			_ = unix.Unlink(path)
		}
	}
}

// cgroupWrites opens every file of the cgroups for writing and makes a cgroup in each. It says one line for each errno
// with the number of files, and one for each file that could be opened.
func cgroupWrites([]string) {
	count := map[string]int{}
	must(filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			say(path, nameOf(err), "walk")
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		if d.IsDir() {
			err := unix.Mkdir(path+"/probe", 0o755)
			if err == nil {
				say("mkdir "+path, "OK", "")
			}
			count["mkdir "+nameOf(err)]++
			return nil
		}
		fd, err := openRaw(path, unix.O_WRONLY, 0)
		if err == nil {
			_ = unix.Close(fd)
			say("open "+path, "OK", "")
		}
		count["open "+nameOf(err)]++
		return nil
	}))
	for what, n := range count {
		call, errno, _ := strings.Cut(what, " ")
		say(call+" all", errno, fmt.Sprint(n))
	}
	for _, name := range []string{"release_agent", "cgroup.procs", "tasks"} {
		found, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
		sayErr("glob "+name, err, strings.Join(found, " "))
	}
}

// walk says of the whole tree, /proc left out, what is special or can be written to.
func walk([]string) {
	must(filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if path == "/proc" {
			return fs.SkipDir
		}
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil {
			return nil
		}
		kind := map[uint32]string{unix.S_IFBLK: "block", unix.S_IFCHR: "character", unix.S_IFIFO: "fifo", unix.S_IFSOCK: "socket", unix.S_IFREG: "file", unix.S_IFDIR: "folder"}[st.Mode&unix.S_IFMT]
		switch kind {
		case "block", "character":
			say(kind, "OK", fmt.Sprintf("%s %d:%d", path, unix.Major(st.Rdev), unix.Minor(st.Rdev)))
		case "socket", "fifo":
			say(kind, "OK", path)
		}
		if st.Mode&0o6000 != 0 {
			say("setid", "OK", path)
		}
		if kind != "character" && unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil {
			say("writable "+kind, "OK", path)
		}
		if n, err := unix.Getxattr(path, "security.capability", nil); err == nil && n > 0 {
			say("capability", "OK", path)
		}
		return nil
	}))
}

// overwrite opens programs for writing: those it runs, and a copy of its own that is running.
func overwrite(paths []string) {
	openAll(paths)
	own := "/home/job/running"
	text, err := os.ReadFile("/proc/self/exe")
	must(err)
	must(os.WriteFile(own, text, 0o700))
	p, err := os.StartProcess(own, []string{own, "ids"}, &os.ProcAttr{Env: os.Environ(), Files: nil})
	must(err)
	fd, err := openRaw(own, unix.O_WRONLY, 0)
	sayErr("a running program of the job", err, fmt.Sprint(fd))
	_, _ = p.Wait()
	must(os.Remove(own))
}

// mountPoints are the targets in /proc/self/mountinfo.
func mountPoints() []string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	must(err)
	var out []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 4 {
			out = append(out, f[4])
		}
	}
	return out
}

// fillBytes writes to each mount point until it is full.
func fillBytes(args []string) {
	keep := len(args) > 0 && args[0] == "keep"
	block := make([]byte, 1<<20)
	for _, dir := range mountPoints() {
		path := filepath.Join(dir, "fill")
		fd, err := openRaw(path, unix.O_WRONLY|unix.O_CREAT, 0o600)
		if err != nil {
			say(dir, nameOf(err), "create")
			continue
		}
		var n int
		total := int64(0)
		for err == nil {
			n, err = unix.Write(fd, block)
			total += int64(max(n, 0))
		}
		sayErr(dir, err, fmt.Sprint(total))
		_ = unix.Close(fd)
		if !keep {
			must(unix.Unlink(path))
		}
	}
}

// fillInodes makes files in each mount point until it takes no more.
func fillInodes([]string) {
	for _, dir := range mountPoints() {
		at := filepath.Join(dir, "many")
		err := unix.Mkdir(at, 0o700)
		n := 0
		for err == nil {
			var fd int
			if fd, err = openRaw(fmt.Sprintf("%s/%d", at, n), unix.O_WRONLY|unix.O_CREAT, 0o600); err == nil {
				_ = unix.Close(fd)
				n++
			}
		}
		sayErr(dir, err, fmt.Sprint(n))
		_ = os.RemoveAll(at)
	}
}
