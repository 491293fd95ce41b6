package enginetest

import (
	"context"
	"fmt"
	"time"

	"sandboxd/internal/engine"
)

// Fault is one thing that goes wrong. Kind, Hang and LoseReply exclude each other; Delay goes with any and alone.
type Fault struct {
	Op  string // engine.OpCreate, …
	Nth int    // which call of Op from now on, 1 the next; 0 for every one

	Kind      engine.Kind   // fail so, without effect
	Text      string        // of the failure; a default where empty
	Unsure    bool          // of the failure
	Hang      bool          // no effect and no answer until the context ends or CallTimeout is over: TimedOut
	LoseReply bool          // take effect, then fail with TimedOut
	Delay     time.Duration // before anything else
}

// Inject adds a fault. Faults of the same call apply in the order they were added, the first alone.
func (f *Fake) Inject(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, &fault)
}

// Heal takes all faults away. Calls that hang already go on hanging.
func (f *Fake) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// faultLocked counts the call against all faults of op and returns the one that applies now, or none.
func (f *Fake) faultLocked(op string) Fault {
	var now Fault
	kept := f.faults[:0]
	for _, fault := range f.faults {
		applies := fault.Op == op && fault.Nth <= 1
		if applies && now.Op == "" {
			now = *fault
		}
		switch {
		case fault.Op != op || fault.Nth == 0:
			kept = append(kept, fault)
		case fault.Nth > 1:
			fault.Nth--
			kept = append(kept, fault)
		}
	}
	f.faults = kept
	return now
}

// suffer waits and fails as the fault says.
func (f *Fake) suffer(ctx context.Context, fault Fault) error {
	if fault.Delay > 0 {
		if err := f.wait(ctx, fault.Delay); err != nil {
			return err
		}
	}
	switch {
	case fault.Hang:
		if err := f.wait(ctx, f.CallTimeout); err != nil {
			return err
		}
		return &engine.Error{Kind: engine.TimedOut, Unsure: true, Err: fmt.Errorf("no answer to %s within %v", fault.Op, f.CallTimeout)}
	case fault.Kind != "":
		text := fault.Text
		if text == "" {
			text = "scripted failure: " + string(fault.Kind)
		}
		return &engine.Error{Kind: fault.Kind, Unsure: fault.Unsure || fault.Kind == engine.TimedOut, Err: fmt.Errorf("%s", text)}
	}
	return nil
}

func (f *Fake) wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return f.ended(ctx, true)
	case <-f.ctx.Done():
		return because(engine.Unavailable, "the fake is closed")
	}
}
