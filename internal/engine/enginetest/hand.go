package enginetest

import (
	"fmt"

	"sandboxd/internal/engine"
)

// By hand: what happens to containers without any call of ours. Each panics on a container that does not exist, for
// that is a mistake in the test.

// Exit ends a running container as if its init had exited with code.
func (f *Fake) Exit(id string, code int) {
	f.byHand(id, func(r *record) { f.exitLocked(r, code) })
}

// OutOfMemory ends a running container as if the kernel had killed its init for its memory limit.
func (f *Fake) OutOfMemory(id string) {
	f.byHand(id, func(r *record) {
		r.state.OOMKilled = true
		f.publishLocked(r, engine.OutOfMem)
		f.exitLocked(r, 137)
	})
}

// Pause pauses a running container.
func (f *Fake) Pause(id string) { f.setStatus(id, "running", "paused") }

// Unpause lets a paused one go on.
func (f *Fake) Unpause(id string) { f.setStatus(id, "paused", "running") }

func (f *Fake) setStatus(id, from, to string) {
	f.byHand(id, func(r *record) {
		if r.state.Status == from {
			r.state.Status = to
		}
	})
}

// SetStatus puts a container into any state the engine knows, "dead" and "removing" among them.
func (f *Fake) SetStatus(id, status string) {
	f.byHand(id, func(r *record) { r.state.Status = status })
}

// SetPid gives a running container's init another pid.
func (f *Fake) SetPid(id string, pid int) {
	f.byHand(id, func(r *record) { r.state.Pid = pid })
}

// Change changes the engine's record of a container.
func (f *Fake) Change(id string, change func(*engine.Container)) {
	f.byHand(id, func(r *record) { change(&r.asked) })
}

// Vanish removes a container as if someone else had.
func (f *Fake) Vanish(id string) { f.byHand(id, f.removeLocked) }

// Add puts a container there that was made by someone else, in the given state, and returns its id.
func (f *Fake) Add(c engine.Container, s engine.State) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.ID == "" {
		s.ID = randomHex(32)
	}
	s.Name, s.Labels, s.Image = c.Name, c.Labels, c.Image
	f.containers[s.ID] = &record{asked: engine.Normal(c), state: s, number: len(f.calls), end: func() {}}
	return s.ID
}

// SetDown makes the engine go away or come back. Containers live on; event streams end.
func (f *Fake) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down = down; down {
		f.unsubscribeAllLocked()
	}
}

// KillAll ends all running containers with code, as an engine does that restarts without live restore.
func (f *Fake) KillAll(code int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.containers {
		f.exitLocked(r, code)
	}
}

func (f *Fake) byHand(id string, do func(*record)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.findLocked(id)
	if err != nil {
		panic(fmt.Sprintf("enginetest: %s: %v", id, err))
	}
	do(r)
}
