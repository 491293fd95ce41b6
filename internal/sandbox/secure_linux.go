package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// secureMounts enters the mount namespace of a container that only init runs in yet and cuts every mount off from the
// host's: the engine makes the root a slave of a mount of the host, so that what root mounts there later would show
// inside. While there, no mount may give rights by set-id files any more, those of foreign content none by devices, and
// the folders of the runtime's that only root could write to become read-only. It returns false where the kernel is too
// old (before 5.12) for all but the first.
func secureMounts(p *process, foreign []string) (hardened bool, err error) {
	onThrowawayThread(func() { hardened, err = secureHere(p, foreign) })
	return hardened, err
}

// onThrowawayThread runs do on a thread that ends afterwards, for one that has been in another namespace is of no more
// use. It is never the main thread: that one cannot end, and what /proc/self says is of it.
func onThrowawayThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			onThrowawayThread(do) // while this one is kept busy, another thread is found
			runtime.UnlockOSThread()
			return
		}
		do() // the thread is still locked when the goroutine ends, so the runtime ends it
	}()
	<-done
}

func secureHere(p *process, foreign []string) (bool, error) {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return false, fmt.Errorf("mounts of the container: unshare: %w", err)
	}
	// Not by the pidfd, which kernels before 5.8 do not take.
	ns, err := unix.Open(p.path("ns/mnt"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("mounts of the container: %w", err)
	}
	defer unix.Close(ns)
	if !p.alive() {
		return false, fmt.Errorf("mounts of the container: %w", ErrInitDied)
	}
	if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
		return false, fmt.Errorf("mounts of the container: setns: %w", err)
	}
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID, Propagation: unix.MS_PRIVATE}
	err = unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &all)
	if errors.Is(err, unix.ENOSYS) {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return false, fmt.Errorf("mounts of the container: private: %w", err)
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("mounts of the container: mount_setattr: %w", err)
	}
	for _, target := range foreign {
		if err := setMount(target, unix.MOUNT_ATTR_NODEV); err != nil {
			return false, err
		}
	}
	// All containers together have the host's terminals; one job could take them all.
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NOEXEC, ptsOptions); err != nil {
		return false, fmt.Errorf("mounts of the container: /dev/pts: %w", err)
	}
	for _, target := range readonlyToo {
		if err := setMount(target, unix.MOUNT_ATTR_RDONLY); err != nil {
			return false, err
		}
	}
	return true, nil
}

// ptsOptions are the runtime's own, and how many terminals a container may open.
const ptsOptions = "newinstance,gid=5,mode=0620,ptmxmode=0666,max=64"

func setMount(target string, attr uint64) error {
	set := unix.MountAttr{Attr_set: attr}
	if err := unix.MountSetattr(unix.AT_FDCWD, target, unix.AT_SYMLINK_NOFOLLOW, &set); err != nil {
		return fmt.Errorf("mounts of the container: %s: mount_setattr: %w", target, err)
	}
	return nil
}
