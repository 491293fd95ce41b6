package enginetest

import (
	"context"
	"maps"
	"time"

	"sandboxd/internal/engine"
)

// subscriber is one reader of events. Its channel is closed under the fake's mu, by whoever takes it off the list.
type subscriber struct {
	labels map[string]string
	out    chan engine.Event
}

// Events streams deaths, out-of-memory kills and removals until ctx ends or the fake goes down. A reader that is more
// than 64 behind loses events.
func (f *Fake) Events(ctx context.Context, labels map[string]string) (<-chan engine.Event, error) {
	s := &subscriber{labels: labels, out: make(chan engine.Event, 64)}
	err := f.call(ctx, Call{Op: engine.OpEvents}, func() error {
		if len(labels) == 0 {
			return because(engine.Invalid, "at least one label must be given")
		}
		f.subscribers[s] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.unsubscribeLocked(s)
	})
	return s.out, nil
}

func (f *Fake) unsubscribeLocked(s *subscriber) {
	if f.subscribers[s] {
		delete(f.subscribers, s)
		close(s.out)
	}
}

func (f *Fake) unsubscribeAllLocked() {
	for s := range f.subscribers {
		f.unsubscribeLocked(s)
	}
}

func (f *Fake) publishLocked(r *record, a engine.Action) {
	for s := range f.subscribers {
		if !carries(r.state.Labels, s.labels) {
			continue
		}
		e := engine.Event{ID: r.state.ID, Name: r.state.Name, Action: a, At: time.Now(), Labels: maps.Clone(r.state.Labels)}
		if a == engine.Died {
			e.ExitCode = r.state.ExitCode
		}
		select {
		case s.out <- e:
		default:
		}
	}
}
