package scheduler

import (
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// maxBypass is how often a job that does not fit may be passed by before nothing else starts until it does.
const maxBypass = 64

// load is what runs now.
type load struct {
	running           int
	uid               map[uint32]int
	tree              map[job.ID]int
	milliCPUs, memory int64
}

func (l load) fits(it store.QueueItem, c Capacity) bool {
	return l.milliCPUs+it.MilliCPUs <= c.MilliCPUs && l.memory+it.Memory <= c.Memory
}

// waiting is one queued job.
type waiting struct {
	store.QueueItem
	bypassed int
}

// queue holds the queued jobs by uid. Its order: the uid with the fewest running jobs and least recently served, in it
// the tree with the fewest running jobs, then priority, then age. Guarded by the scheduler's mutex.
type queue struct {
	byUID  map[uint32]map[job.ID]*waiting
	uidOf  map[job.ID]uint32
	served map[uint32]uint64 // turn in which the uid was last served
	turn   uint64
}

func newQueue() *queue {
	return &queue{byUID: map[uint32]map[job.ID]*waiting{}, uidOf: map[job.ID]uint32{}, served: map[uint32]uint64{}}
}

func (q *queue) len() int { return len(q.uidOf) }

func (q *queue) add(it store.QueueItem) {
	if q.byUID[it.OwnerUID] == nil {
		q.byUID[it.OwnerUID] = map[job.ID]*waiting{}
	}
	q.byUID[it.OwnerUID][it.ID] = &waiting{QueueItem: it}
	q.uidOf[it.ID] = it.OwnerUID
}

// remove takes a job out and reports whether it was queued.
func (q *queue) remove(id job.ID) bool {
	uid, ok := q.uidOf[id]
	if !ok {
		return false
	}
	delete(q.uidOf, id)
	delete(q.byUID[uid], id)
	if len(q.byUID[uid]) == 0 {
		delete(q.byUID, uid)
	}
	return true
}

func (q *queue) position(id job.ID) int {
	if _, ok := q.uidOf[id]; !ok {
		return 0
	}
	n := 1
	for other := range q.uidOf {
		if other < id {
			n++
		}
	}
	return n
}

// pick returns the job that starts next, or none: no place, or nothing that fits. A job that is passed by because it
// does not fit is counted; after maxBypass times all others wait for it.
func (q *queue) pick(l load, c Capacity) (store.QueueItem, bool) {
	if l.running >= c.MaxRunning {
		return store.QueueItem{}, false
	}
	tried := map[uint32]bool{}
	var passed []*waiting
	for {
		uid, ok := q.nextUID(l, c, tried)
		if !ok {
			return store.QueueItem{}, false
		}
		tried[uid] = true
		best := q.nextOf(uid, l)
		if !l.fits(best.QueueItem, c) {
			if best.bypassed >= maxBypass {
				return store.QueueItem{}, false
			}
			passed = append(passed, best)
			if best = q.nextFitting(uid, l, c); best == nil {
				continue
			}
		}
		for _, w := range passed {
			w.bypassed++
		}
		q.turn++
		q.served[uid] = q.turn
		return best.QueueItem, true
	}
}

func (q *queue) nextUID(l load, c Capacity, tried map[uint32]bool) (best uint32, found bool) {
	for uid := range q.byUID {
		if tried[uid] || l.uid[uid] >= c.MaxRunningPerUID {
			continue
		}
		if !found || l.uid[uid] < l.uid[best] || l.uid[uid] == l.uid[best] && q.earlier(uid, best) {
			best, found = uid, true
		}
	}
	return best, found
}

func (q *queue) earlier(a, b uint32) bool {
	if q.served[a] != q.served[b] {
		return q.served[a] < q.served[b]
	}
	return a < b
}

func (q *queue) nextOf(uid uint32, l load) *waiting {
	var best *waiting
	for _, w := range q.byUID[uid] {
		if best == nil || before(w, best, l) {
			best = w
		}
	}
	return best
}

func (q *queue) nextFitting(uid uint32, l load, c Capacity) *waiting {
	var best *waiting
	for _, w := range q.byUID[uid] {
		if l.fits(w.QueueItem, c) && (best == nil || before(w, best, l)) {
			best = w
		}
	}
	return best
}

func before(a, b *waiting, l load) bool {
	if x, y := l.tree[a.Root], l.tree[b.Root]; x != y {
		return x < y
	}
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return a.ID < b.ID
}
