package callerfs_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/callerfs"
)

// What the helper returns is looked at again; it is a process with a caller's rights.
func TestALyingHelperGetsNothingGiven(t *testing.T) {
	dir := folder(t, root)
	gone, goneDir := write(t, dir+"/gone", root, 0o644), mkdir(t, dir+"/gone-dir", root, 0o755)
	before := descriptors(t)
	for _, c := range []struct {
		name    string
		binary  []string
		says    string
		refusal bool
	}{
		{"a file of proc", liar("gives", "/proc/self/status"), "(proc) that is not given", true},
		{"a forbidden folder", liar("gives", "/dev"), "/dev", true},
		{"the root", liar("gives", "/"), "is the whole host", true},
		{"a device", liar("gives", "/dev/null"), "/dev/null", true},
		{"a pipe", liar("pipe"), "looking at", false},
		{"its own socket", liar("socket"), "looking at", false},
		{"a deleted file", liar("deleted", gone), "was deleted", true},
		{"a deleted folder", liar("deleted", goneDir), "was deleted", true},
		{"a reason and a descriptor", liar("refuses and gives"), "is not nice", true},
		{"no descriptor", liar("nothing"), "path helper", false},
		{"two descriptors", liar("several"), "path helper", false},
		{"six descriptors", liar("many"), "path helper", false},
		{"no JSON", liar("garbage"), "the path helper's answer", false},
		{"no word", liar("silent"), "hearing the path helper", false},
		{"a fault", liar("fault"), "setgroups: no", false},
	} {
		o := newOpener(t, callerfs.Rules{}, c.binary...)
		f, err := o.Open(t.Context(), caller(root), "/asked")
		if f != nil {
			_ = f.Close()
		}
		_ = o.Wait(t.Context())
		var r *callerfs.Refusal
		if err == nil || errors.As(err, &r) != c.refusal || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}

func TestAHangingPathIsRefusedInTime(t *testing.T) {
	asRoot(t)
	o := newOpener(t, callerfs.Rules{}, "/bin/sleep", "60")
	began := time.Now()
	refused(t, o, caller(alice), "/hangs", "did not answer within 2s; its file system hangs")
	if took := time.Since(began); took < callerfs.Deadline || took > callerfs.Deadline+time.Second {
		t.Errorf("refused after %s", took)
	}
	// The helper can be killed, and so its place is free again.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := o.Wait(ctx); err != nil {
		t.Errorf("the helper lives on: %v", err)
	}
	refused(t, o, caller(alice), "/hangs", "did not answer within 2s")
}

func TestACallerWhoGoesAwayGetsItsCancelBack(t *testing.T) {
	asRoot(t)
	o := newOpener(t, callerfs.Rules{}, "/bin/sleep", "60")
	left := errors.New("the client hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(left) })
	began := time.Now()
	_, err := o.Open(ctx, caller(alice), "/hangs")
	var r *callerfs.Refusal
	if !errors.Is(err, left) || errors.As(err, &r) || time.Since(began) > time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if _, err := o.Open(ctx, caller(alice), "/hangs"); !errors.Is(err, left) {
		t.Errorf("cancelled before it began: %v", err)
	}
}

// Many requests at once leave no more helpers behind than one after the other.
func TestFewHelpersOfOneUserRunAtOnce(t *testing.T) {
	dir := folder(t, root)
	own(t, dir, root, 0o777)
	o := newOpener(t, callerfs.Rules{}, liar("hang", dir)...)
	var all sync.WaitGroup
	began := time.Now()
	for i := range 40 {
		all.Go(func() {
			uid := []uint32{alice, bob}[i%2]
			_, err := o.Open(t.Context(), caller(uid), "/hangs")
			var r *callerfs.Refusal
			if !errors.As(err, &r) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > callerfs.Deadline+2*time.Second {
		t.Errorf("the last was refused after %s", took)
	}
	started, err := os.ReadDir(dir)
	if err != nil || len(started) == 0 || len(started) > 2*callerfs.MaxStuck {
		t.Errorf("%d helpers of two users ran, %v", len(started), err)
	}
}

func TestManyOpensOfOneUserAllSucceed(t *testing.T) {
	dir := folder(t, alice)
	o := newOpener(t, callerfs.Rules{})
	before := descriptors(t)
	var all sync.WaitGroup
	for range 24 {
		all.Go(func() {
			f, err := o.Open(t.Context(), caller(alice), dir)
			if err != nil {
				// Places are few and the deadline is the same for all: on a slow machine the last may be told so.
				var r *callerfs.Refusal
				if !errors.As(err, &r) {
					t.Error(err)
				}
				return
			}
			_ = f.Close()
		})
	}
	all.Wait()
	_ = o.Wait(t.Context())
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}
