package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// Events streams what happens to the containers with all these labels: deaths, out-of-memory kills and removals. The
// stream is a source of hints: it ends, with the channel closed, when ctx or d ends, or when the engine goes away; then
// list again, and ask for new events. Events are not kept for a reader that is slow: the engine drops them.
func (d *Docker) Events(ctx context.Context, labels map[string]string) (<-chan Event, error) {
	match, err := byLabels(OpEvents, labels)
	if err != nil {
		return nil, err
	}
	match.Add("type", string(events.ContainerEventType))
	for _, a := range []Action{Died, OutOfMem, Destroyed} {
		match.Add("event", string(a))
	}
	if err := d.enter(); err != nil {
		return nil, &Error{Kind: Unavailable, Op: OpEvents, Err: err}
	}
	ctx, end := d.unbound(ctx)
	late := time.AfterFunc(d.opt.CallTimeout, func() { end(fmt.Errorf("no answer to %s within %v", OpEvents, d.opt.CallTimeout)) })
	var in subscription
	err = d.run(ctx, OpEvents, "", func(ctx context.Context, s *session) (err error) {
		in, err = subscribe(ctx, s, match)
		if !late.Stop() && err == nil {
			err = in.drain(ctx) // taken, and too late
		}
		return err
	})
	late.Stop()
	if err != nil {
		end(nil)
		d.calls.Done()
		return nil, err
	}
	out := make(chan Event, 64)
	go func() {
		defer d.calls.Done()
		defer end(nil)
		defer close(out)
		in.pass(ctx, out)
	}()
	return out, nil
}

// subscription is the SDK's stream: messages until errs gets an error and is closed.
type subscription struct {
	messages <-chan events.Message
	errs     <-chan error
}

// subscribe returns when the engine has taken the subscription, so that nothing is missed after it.
func subscribe(ctx context.Context, s *session, match filters.Args) (subscription, error) {
	var in subscription
	in.messages, in.errs = s.Events(ctx, events.ListOptions{Filters: match})
	if exchangeOf(ctx).status.Load() != http.StatusOK {
		return subscription{}, in.drain(ctx)
	}
	return in, nil
}

// drain waits for the end and returns its error. The SDK's goroutine is gone then.
func (in subscription) drain(ctx context.Context) error {
	err := <-in.errs
	for range in.errs { // until closed
	}
	return cmp.Or(err, context.Cause(ctx), io.EOF)
}

func (in subscription) pass(ctx context.Context, out chan<- Event) {
	for {
		select {
		case m := <-in.messages:
			select {
			case out <- eventOf(m):
			case <-ctx.Done():
			}
		case <-in.errs:
			for range in.errs {
			}
			return
		}
	}
}

func eventOf(m events.Message) Event {
	e := Event{ID: m.Actor.ID, Action: Action(m.Action), At: time.Unix(0, m.TimeNano), Labels: map[string]string{}}
	for k, v := range m.Actor.Attributes {
		switch k {
		case "name":
			e.Name = v
		case "exitCode":
			e.ExitCode, _ = strconv.Atoi(v) // a hint; the state has the true one
		case "image", "execDuration":
		default:
			e.Labels[k] = v
		}
	}
	return e
}
