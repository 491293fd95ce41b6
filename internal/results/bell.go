package results

import (
	"sync"
	"time"
)

// bell wakes readers that wait for more. It is rung at once after a pause, and at most once a window in a flood: waking
// a thousand readers at each small write would hold up the Writer. Guarded by the stream's mutex.
type bell struct {
	ch      chan struct{} // closed to wake; nil while nobody waits
	waiting int
	last    time.Time
	timer   *time.Timer
	armed   bool
}

// The window grows with the number of readers and stays below what a person notices.
const (
	minWindow = time.Millisecond
	maxWindow = 10 * time.Millisecond
	perReader = 10 * time.Microsecond
)

func (b *bell) wait() <-chan struct{} {
	if b.ch == nil {
		b.ch = make(chan struct{})
		b.waiting = 0
	}
	b.waiting++
	return b.ch
}

// ring wakes the waiting now or within the window. mu is the mutex that guards b; the caller holds it.
func (b *bell) ring(mu *sync.Mutex) {
	if b.ch == nil || b.armed {
		return
	}
	window := min(max(time.Duration(b.waiting)*perReader, minWindow), maxWindow)
	if left := window - time.Since(b.last); left > 0 {
		b.arm(mu, left)
		return
	}
	b.now()
}

func (b *bell) arm(mu *sync.Mutex, d time.Duration) {
	b.armed = true
	if b.timer != nil {
		b.timer.Reset(d)
		return
	}
	b.timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		if b.armed {
			b.now()
		}
	})
}

// now wakes all who wait.
func (b *bell) now() {
	if b.armed {
		b.armed = false
		b.timer.Stop()
	}
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
		b.last = time.Now()
	}
}
