package callerfs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/callerfs"
)

func TestOwnersOpenWhatIsTheirs(t *testing.T) {
	o := newOpener(t, callerfs.Rules{})
	for _, uid := range []uint32{root, alice, bob, 4294967294} {
		dir := folder(t, uid)
		for _, c := range []struct {
			path string
			dir  bool
			mode uint32
		}{
			{mkdir(t, dir+"/sub", uid, 0o700), true, 0o700},
			{write(t, dir+"/file", uid, 0o400), false, 0o400},
			{write(t, dir+"/set-id", uid, 0o755|os.ModeSetuid), false, 0o4755},
		} {
			f := opens(t, o, caller(uid), c.path)
			if f.Dir != c.dir || f.Path != c.path || f.Name() != c.path || f.Owner != uid || f.Mode != c.mode {
				t.Errorf("uid %d: %+v", uid, f)
			}
		}
	}
}

func TestWhatComesBackIsTheDescriptorAlone(t *testing.T) {
	o := newOpener(t, callerfs.Rules{})
	dir := folder(t, alice)
	f := opens(t, o, caller(alice), write(t, dir+"/file", alice, 0o600))
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, syscall.EBADF) {
		t.Errorf("it can be read: %v", err)
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("programs inherit it: %d, %v", flags, err)
	}
	// A path that is swapped afterwards changes nothing.
	var before, after unix.Stat_t
	_ = unix.Fstat(int(f.Fd()), &before)
	if err := errors.Join(os.Remove(dir+"/file"), os.Symlink("/etc/shadow", dir+"/file")); err != nil {
		t.Fatal(err)
	}
	_ = unix.Fstat(int(f.Fd()), &after)
	if before.Ino != after.Ino || after.Uid != alice {
		t.Error("the descriptor became another file")
	}
}

func TestRightsAreTheCallersOwn(t *testing.T) {
	dir := folder(t, alice)
	secret := write(t, dir+"/secret", root, 0o600)
	mine := write(t, dir+"/mine", alice, 0o600)
	closed := mkdir(t, dir+"/closed", root, 0o700)
	write(t, closed+"/file", alice, 0o644)
	listed := mkdir(t, dir+"/listed", root, 0o744) // names may be read, nothing opened
	write(t, dir+"/unreadable", alice, 0o300)
	own(t, mkdir(t, dir+"/blind", alice, 0o700), alice, 0o300)

	o := newOpener(t, callerfs.Rules{Roots: []string{dir}})
	refused(t, o, caller(alice), secret, "cannot be read by you (uid 71001)")
	refused(t, o, caller(bob), mine, "cannot be read by you (uid 71002)")
	refused(t, o, caller(alice), closed, "cannot be read by you")
	refused(t, o, caller(alice), closed+"/file", "cannot be reached with your rights")
	refused(t, o, caller(alice), listed, "cannot be read by you")
	refused(t, o, caller(alice), dir+"/unreadable", "cannot be read by you")
	refused(t, o, caller(alice), dir+"/blind", "cannot be read by you")
	// Root has what root owns, and none of the powers beyond.
	refused(t, o, caller(root), mine, "cannot be read by you (uid 0)")
	opens(t, o, caller(root), secret)
	opens(t, o, caller(alice), mine)
}

func TestGroupsCountAsTheKernelNamesThem(t *testing.T) {
	dir := folder(t, root)
	shared := write(t, dir+"/shared", root, 0o640)
	if err := os.Chown(shared, 0, int(crew)); err != nil {
		t.Fatal(err)
	}
	barred := write(t, dir+"/barred", root, 0o604) // readable by others, not by the group
	if err := os.Chown(barred, 0, int(crew)); err != nil {
		t.Fatal(err)
	}
	o := newOpener(t, callerfs.Rules{Roots: []string{dir}})
	opens(t, o, caller(alice, 5, crew), shared)
	opens(t, o, callerfs.Caller{UID: alice, GID: crew}, shared)
	refused(t, o, caller(alice), shared, "cannot be read by you")
	refused(t, o, caller(alice, 5), shared, "cannot be read by you")
	// The daemon's own groups must be gone: with root's group this could be read.
	opens(t, o, caller(bob), barred)
	refused(t, o, caller(bob, crew), barred, "cannot be read by you")
	many := make([]uint32, 1000)
	for i := range many {
		many[i] = crew + uint32(len(many)-1-i)
	}
	opens(t, o, caller(alice, many...), shared)
}

func TestTheHelperIsNotForUseByHand(t *testing.T) {
	var out strings.Builder
	cmd := exec.Command("/proc/self/exe", callerfs.HelperArg)
	cmd.Stderr = &out
	err := cmd.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 2 || !strings.Contains(out.String(), "not for use by hand") {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestAHelperThatCannotStartIsOurFault(t *testing.T) {
	o := newOpener(t, callerfs.Rules{}, filepath.Join(t.TempDir(), "none"))
	before := descriptors(t)
	for range 5 { // more often than there are places
		_, err := o.Open(t.Context(), caller(alice), "/etc")
		var r *callerfs.Refusal
		if err == nil || errors.As(err, &r) || !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}
