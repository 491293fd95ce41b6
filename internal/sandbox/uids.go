package sandbox

import "sync"

// uids gives out the slot uids. One is taken from the intent of a slot until everything of the slot is gone, so that
// two containers never share a uid and with it the kernel's per-user quotas.
type uids struct {
	first, stride, places uint32

	mu    sync.Mutex
	taken map[uint32]string // place → slot; the uid is first + place*stride
	next  uint32            // place to try next, so that a freed uid rests as long as possible
}

func newUIDs(first, count, stride uint32) *uids {
	return &uids{first: first, stride: stride, places: count / stride, taken: map[uint32]string{}}
}

// take returns a uid that nothing holds.
func (u *uids) take(slot string) (uint32, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range u.places {
		place := u.next
		u.next = (u.next + 1) % u.places
		if _, held := u.taken[place]; !held {
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
		}
	}
}

// free gives back what the slot holds, and nothing that another has taken since.
func (u *uids) free(id uint32, slot string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if place, ok := u.place(id); ok && u.taken[place] == slot {
		delete(u.taken, place)
	}
}

func (u *uids) place(id uint32) (uint32, bool) {
	if id < u.first || (id-u.first)/u.stride >= u.places {
		return 0, false
	}
	return (id - u.first) / u.stride, true
}
