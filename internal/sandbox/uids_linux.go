package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// uidLocks holds one empty file for each slot uid ever taken on this host since it booted, locked while it is. Only root
// may enter: elsewhere anybody could keep all uids from all daemons.
const uidLocks = "/run/sandboxd-uids"

// uids gives out the slot uids. One is taken from the intent of a slot until everything of the slot is gone, so that
// two containers never share a uid and with it the kernel's per-user quotas.
type uids struct {
	first, stride, places uint32

	mu    sync.Mutex
	taken map[uint32]string   // place → slot; the uid is first + place*stride
	locks map[uint32]*os.File // of taken places: what other daemons of this host see
	next  uint32              // place to try next, so that a freed uid rests as long as possible
}

func newUIDs(first, count, stride uint32) *uids {
	return &uids{first: first, stride: stride, places: count / stride, taken: map[uint32]string{}, locks: map[uint32]*os.File{}}
}

// take returns a uid that nothing holds.
func (u *uids) take(slot string) (uint32, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range u.places {
		place := u.next
		u.next = (u.next + 1) % u.places
		if _, held := u.taken[place]; !held && u.lockLocked(place) {
			u.taken[place] = slot
			return u.first + place*u.stride, nil
		}
	}
	return 0, ErrNoUID
}

// nobodys holds a uid for a process that no record knows of.
const nobodys = "-"

// hold marks the uid, or the one whose group places it is among, as taken by a slot. Ids outside the range are nobody's
// business.
func (u *uids) hold(id uint32, slot string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if place, ok := u.place(id); ok {
		if _, held := u.taken[place]; !held {
			u.taken[place] = slot
			u.lockLocked(place) // another daemon took it while this one was away: nothing to be done now
		}
	}
}

// lockLocked claims a uid among the daemons of this host, which would hand out one uid twice where they share a range.
// The kernel takes the lock back when the daemon ends.
func (u *uids) lockLocked(place uint32) bool {
	if err := os.MkdirAll(uidLocks, 0o700); err != nil {
		return false
	}
	name := filepath.Join(uidLocks, strconv.FormatUint(uint64(u.first+place*u.stride), 10))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return false
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return false
	}
	u.locks[place] = f
	return true
}

// free gives back what the slot holds, and nothing that another has taken since.
func (u *uids) free(id uint32, slot string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if place, ok := u.place(id); ok && u.taken[place] == slot {
		delete(u.taken, place)
		if f := u.locks[place]; f != nil {
			_ = f.Close()
			delete(u.locks, place)
		}
	}
}

func (u *uids) place(id uint32) (uint32, bool) {
	if id < u.first || (id-u.first)/u.stride >= u.places {
		return 0, false
	}
	return (id - u.first) / u.stride, true
}
