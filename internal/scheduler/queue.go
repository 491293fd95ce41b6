package scheduler

import (
	"cmp"
	"slices"

	"sandboxd/internal/envelope"
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

func newLoad() load { return load{uid: map[uint32]int{}, tree: map[job.ID]int{}} }

func (l *load) add(it store.QueueItem) {
	l.running++
	l.uid[it.OwnerUID]++
	l.tree[it.Root]++
	l.milliCPUs += it.MilliCPUs
	l.memory += memoryOf(it)
}

// memoryOf is what a job takes of the host: its own memory, which the queue knows, and that of its init.
func memoryOf(it store.QueueItem) int64 { return it.Memory + envelope.InitMemory }

func (l load) fits(it store.QueueItem, c Capacity) bool {
	return it.MilliCPUs <= c.MilliCPUs-l.milliCPUs && memoryOf(it) <= c.Memory-l.memory
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

func (q *queue) has(id job.ID) bool { _, ok := q.uidOf[id]; return ok }

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
	if !q.has(id) {
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

// pick returns the job that starts next, or none: no place, or nothing that fits. A job at the head of its uid that is
// passed by because it does not fit is counted; after maxBypass times all others wait for it, whoever they are of.
func (q *queue) pick(l load, c Capacity) (store.QueueItem, bool) {
	chosen, passed := q.choose(l, c)
	if chosen == nil {
		return store.QueueItem{}, false
	}
	for _, w := range passed {
		w.bypassed++
	}
	q.turn++
	q.served[chosen.OwnerUID] = q.turn
	return chosen.QueueItem, true
}

// choose is pick as a question: it changes nothing. passed are those that are passed by.
func (q *queue) choose(l load, c Capacity) (chosen *waiting, passed []*waiting) {
	if l.running >= c.MaxRunning {
		return nil, nil
	}
	var starving *waiting
	for _, uid := range q.order(l, c) {
		head := q.first(uid, l, c, false)
		if head.bypassed >= maxBypass && (starving == nil || head.ID < starving.ID) {
			starving = head
		}
		fitting := head
		if !l.fits(head.QueueItem, c) {
			// One whose turn came after that of the chosen is passed by only where it is older.
			if chosen == nil || head.ID < chosen.ID {
				passed = append(passed, head)
			}
			fitting = q.first(uid, l, c, true)
		}
		if chosen == nil {
			chosen = fitting
		}
	}
	if starving != nil {
		if !l.fits(starving.QueueItem, c) {
			return nil, nil
		}
		return starving, nil
	}
	return chosen, passed
}

// order lists the uids that wait and may have one job more, the one whose turn it is first.
func (q *queue) order(l load, c Capacity) []uint32 {
	var uids []uint32
	for uid := range q.byUID {
		if l.uid[uid] < c.MaxRunningPerUID {
			uids = append(uids, uid)
		}
	}
	slices.SortFunc(uids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(l.uid[a], l.uid[b]), cmp.Compare(q.served[a], q.served[b]), cmp.Compare(a, b))
	})
	return uids
}

// first returns the job of a uid whose turn it is, among those that fit where fitting is set; nil for none.
func (q *queue) first(uid uint32, l load, c Capacity, fitting bool) *waiting {
	var best *waiting
	for _, w := range q.byUID[uid] {
		if (!fitting || l.fits(w.QueueItem, c)) && (best == nil || before(w, best, l)) {
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
