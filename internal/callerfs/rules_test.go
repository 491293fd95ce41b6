package callerfs_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/callerfs"
)

func TestOnlyFilesAndFoldersAreGiven(t *testing.T) {
	dir := folder(t, alice)
	o := newOpener(t, callerfs.Rules{})
	if err := unix.Mkfifo(dir+"/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(dir+"/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", dir+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, name := range []string{"fifo", "null", "socket"} {
		own(t, dir+"/"+name, alice, 0o666)
		refused(t, o, caller(alice), dir+"/"+name, "is neither a directory nor a regular file")
	}
}

func TestPathsThatLeadNowhere(t *testing.T) {
	dir := folder(t, alice)
	write(t, dir+"/file", alice, 0o644)
	o := newOpener(t, callerfs.Rules{})
	for path, says := range map[string]string{
		dir + "/none":                         "does not exist",
		dir + "/none/deeper":                  "does not exist",
		dir + "/file/x":                       "goes through something that is not a directory",
		dir + "/file/":                        "goes through something that is not a directory",
		link(t, dir+"/gone", dir+"/dangling"): "does not exist",
		link(t, dir+"/loop", dir+"/loop"):     "goes through links that are not followed",
		dir + "/" + strings.Repeat("x", 256):  "is too long a path",
		dir + strings.Repeat("/x", 3000):      "is too long a path",
		"":                                    "is not an absolute path",
		"file":                                "is not an absolute path",
		"./" + dir:                            "is not an absolute path",
		dir + "/a\x00b":                       "is not an absolute path",
	} {
		refused(t, o, caller(alice), path, says)
	}
}

func TestLinksAreFollowedAndTheirEndCounts(t *testing.T) {
	dir, other := folder(t, alice), folder(t, bob)
	sub := mkdir(t, dir+"/sub", alice, 0o755)
	o := newOpener(t, callerfs.Rules{})
	for _, path := range []string{link(t, sub, dir+"/link"), link(t, "sub", dir+"/relative"), dir + "/sub/../sub/.", dir + "//sub", dir + "/sub/"} {
		if f := opens(t, o, caller(alice), path); f.Path != sub || !f.Dir {
			t.Errorf("%s is %s", path, f.Path)
		}
	}
	refused(t, o, caller(alice), link(t, other, dir+"/theirs"), "belongs to uid 71002 and not to you (uid 71001)")

	inside := newOpener(t, callerfs.Rules{Roots: []string{dir}})
	refused(t, inside, caller(alice), dir+"/theirs", "lies outside the folders the operator allows ("+dir+")")
	refused(t, inside, caller(root), dir+"/../"+filepath.Base(other), "lies outside the folders")
	refused(t, inside, caller(root), "/root/../etc", "lies outside the folders")
}

func TestMagicLinksAreNotFollowed(t *testing.T) {
	dir := folder(t, alice)
	o := newOpener(t, callerfs.Rules{})
	for _, path := range []string{"/proc/self/exe", "/proc/self/cwd", "/proc/self/root", "/proc/self/root/etc", "/proc/self/fd/0", "/proc/thread-self/cwd", "/dev/stdin",
		link(t, "/proc/self/root/etc", dir+"/magic")} {
		refused(t, o, caller(root), path, "goes through links that are not followed")
	}
}

func TestTheHostsOwnFoldersAreNeverGiven(t *testing.T) {
	asRoot(t)
	o := newOpener(t, callerfs.Rules{})
	for path, says := range map[string]string{
		"/":                 "is the whole host",
		"//":                "is the whole host",
		"/usr/..":           "is the whole host",
		"/proc":             "(proc) that is not given to jobs",
		"/proc/self/status": "(proc) that is not given to jobs",
		"/proc/sys/kernel":  "(proc) that is not given to jobs",
		"/sys":              "(sysfs) that is not given to jobs",
		"/sys/kernel":       "(sysfs) that is not given to jobs",
		"/dev":              "/dev",
		"/dev/null":         "is neither a directory nor a regular file",
		"/run":              "contains /run/",
		"/var/run":          "contains /run/",
		"/var":              "contains /var/lib/docker",
		"/var/lib":          "contains /var/lib/docker",
	} {
		refused(t, o, caller(root), path, says)
	}
	if _, err := os.Stat("/run/docker.sock"); err == nil {
		refused(t, o, caller(root), "/var/run/docker.sock", "is neither a directory nor a regular file")
	}
	if f, err := os.CreateTemp("/dev/shm", "callerfs"); err == nil {
		defer os.Remove(f.Name())
		defer f.Close()
		refused(t, o, caller(root), f.Name(), "lies in /dev, which is never given to a job")
	}
}

func TestForbiddenFoldersTheirInsidesAndTheirParents(t *testing.T) {
	dir := folder(t, root)
	state := mkdir(t, dir+"/var/state", root, 0o755)
	mkdir(t, state+"/streams", root, 0o755)
	mkdir(t, dir+"/var/state2", root, 0o755)
	mkdir(t, dir+"/real/run", root, 0o755)
	link(t, "real", dir+"/alias")
	o := newOpener(t, callerfs.Rules{Forbidden: []string{
		state + "/", // not clean
		dir + "/alias/run",
		dir + "/alias/later/x", // does not exist yet, and its parent neither
	}})
	refused(t, o, caller(root), state, "lies in "+state)
	refused(t, o, caller(root), state+"/streams", "lies in "+state)
	refused(t, o, caller(root), dir+"/var", "contains "+state)
	refused(t, o, caller(root), dir, "contains "+state)
	refused(t, o, caller(root), dir+"/real/run", "lies in "+dir+"/real/run")
	refused(t, o, caller(root), dir+"/alias", "contains "+dir+"/real/")
	refused(t, o, caller(root), mkdir(t, dir+"/real/later/x", root, 0o755), "lies in "+dir+"/real/later/x")
	opens(t, o, caller(root), dir+"/var/state2")
}

func TestForbiddenStandsAboveAllowed(t *testing.T) {
	dir := folder(t, root)
	own := mkdir(t, dir+"/own", root, 0o755)
	o := newOpener(t, callerfs.Rules{Roots: []string{dir, own}, Forbidden: []string{own}})
	refused(t, o, caller(root), own, "never given to a job")
}

func TestRootsMayBeLinksAndEndAtTheirName(t *testing.T) {
	dir := folder(t, root)
	real := mkdir(t, dir+"/real", root, 0o755)
	mkdir(t, dir+"/real2", root, 0o755)
	link(t, "real", dir+"/srv")
	theirs := mkdir(t, real+"/theirs", bob, 0o755)
	o := newOpener(t, callerfs.Rules{Roots: []string{dir + "/srv"}})
	// The owner is of no matter below an allowed root; rights are.
	for _, path := range []string{real, dir + "/srv", theirs} {
		opens(t, o, caller(alice), path)
	}
	refused(t, o, caller(alice), dir+"/real2", "lies outside the folders")
	refused(t, o, caller(alice), dir, "lies outside the folders")
	all := newOpener(t, callerfs.Rules{Roots: []string{"/"}})
	opens(t, all, caller(alice), theirs)
}

func TestOthersFilesAreNotTheirs(t *testing.T) {
	dir := folder(t, bob)
	o := newOpener(t, callerfs.Rules{})
	refused(t, o, caller(alice), dir, "belongs to uid 71002 and not to you (uid 71001); the operator can allow it in workspace.roots")
	refused(t, o, caller(alice), "/etc", "belongs to uid 0")
	opens(t, o, caller(root), dir)
	opens(t, o, caller(bob), dir)
}

// A name that looks like the kernel's mark for a deleted file is a name like any other.
func TestAFileMayBeCalledDeleted(t *testing.T) {
	dir := folder(t, alice)
	o := newOpener(t, callerfs.Rules{})
	f := opens(t, o, caller(alice), write(t, dir+"/notes (deleted)", alice, 0o644))
	if f.Path != dir+"/notes (deleted)" {
		t.Error(f.Path)
	}
}

func TestNamesOfAllKindsComeBackAsTheyAre(t *testing.T) {
	dir := folder(t, alice)
	o := newOpener(t, callerfs.Rules{})
	for _, name := range []string{"with space", "new\nline", "tab\t", "back\\slash", `"quoted"`, "ünï", "bad\xff\xfeutf", "\u202ertl", "-dash", strings.Repeat("n", 255)} {
		path := mkdir(t, dir+"/"+name, alice, 0o755)
		if f := opens(t, o, caller(alice), path); f.Path != path {
			t.Errorf("%q came back as %q", path, f.Path)
		}
	}
}
