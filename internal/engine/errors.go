package engine

import (
	"errors"
	"fmt"
)

// Kind sorts the engine's failures; texts are never matched by callers.
type Kind string

// The kinds.
const (
	NotFound    Kind = "not_found"
	Conflict    Kind = "conflict"    // name in use, wrong state
	Invalid     Kind = "invalid"     // the engine, or we on its behalf, refused our request
	Unavailable Kind = "unavailable" // no engine answers, or none we can talk to
	TimedOut    Kind = "timed_out"   // a deadline or the caller's cancel ended the call; it may still have taken effect
	NoSpace     Kind = "no_space"
	Internal    Kind = "internal" // anything else the engine said
)

// Op names one call, in errors and in the fake's faults.
const (
	OpInfo         = "info"
	OpPing         = "ping"
	OpCreate       = "create"
	OpInspect      = "inspect"
	OpStart        = "start"
	OpKill         = "kill"
	OpRemove       = "remove"
	OpList         = "list"
	OpEvents       = "events"
	OpImageInspect = "image inspect"
	OpImagePull    = "image pull"
	OpImageSave    = "image save"
	OpImageLoad    = "image load"
	OpImageRemove  = "image remove"
)

// Error is one failed engine call.
type Error struct {
	Kind Kind
	Op   string // create, start, inspect, …
	Ref  string // container or image
	// Unsure: the request went out and no answer came back, so it may have taken effect, or still may. Set for TimedOut,
	// for Unavailable when the connection broke, and for Internal when the answer could not be read.
	Unsure bool
	Err    error
}

func (e *Error) Error() string {
	if e.Ref == "" {
		return fmt.Sprintf("engine %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("engine %s %s: %v", e.Op, e.Ref, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first Error in err's chain, Internal where there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// IsUnsure tells whether the failed call may have taken effect. After an unsure Create look for the container by name.
func IsUnsure(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Unsure
}

// FieldError names the field of a Container that Create refuses.
type FieldError struct {
	Field string // as in Go: "Memory", "Binds[0].Propagation", "Tmpfs[/tmp]"
	Want  string // what would be right
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Want }
