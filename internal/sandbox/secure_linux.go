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
//
// A thread that has been in another mount namespace is of no more use; it ends with its goroutine.
func secureMounts(p *process, foreign []string) (hardened bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		hardened, err = secureHere(p, foreign)
	}()
	<-done
	return hardened, err
}

func secureHere(p *process, foreign []string) (bool, error) {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return false, fmt.Errorf("mounts of the container: unshare: %w", err)
	}
	if err := unix.Setns(p.fd, unix.CLONE_NEWNS); err != nil {
		return false, fmt.Errorf("mounts of the container: setns: %w", err)
	}
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID, Propagation: unix.MS_PRIVATE}
	err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &all)
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
	for _, target := range readonlyToo {
		if err := setMount(target, unix.MOUNT_ATTR_RDONLY); err != nil {
			return false, err
		}
	}
	return true, nil
}

func setMount(target string, attr uint64) error {
	set := unix.MountAttr{Attr_set: attr}
	if err := unix.MountSetattr(unix.AT_FDCWD, target, unix.AT_SYMLINK_NOFOLLOW, &set); err != nil {
		return fmt.Errorf("mounts of the container: %s: mount_setattr: %w", target, err)
	}
	return nil
}
