package job

import (
	"errors"
	"fmt"
)

// Code is the stable, machine-readable name of a refusal or fault. Texts may change, codes may not.
type Code string

// The codes. Status and exit numbers stand in one table (codes.go).
const (
	CodeInvalid         Code = "invalid"          // a field of the request is malformed or out of bounds
	CodeNotFound        Code = "not_found"        // no such job, profile, artifact (or not the caller's)
	CodeConflict        Code = "conflict"         // same idempotency key, different body; wrong state
	CodeForbidden       Code = "forbidden"        // the caller may not do that
	CodeNotSubset       Code = "not_subset"       // asks for more than the parent or the config allows
	CodeNotInRoster     Code = "not_in_roster"    // profile or image not among those allowed
	CodeQueueFull       Code = "queue_full"       // bound on queued jobs
	CodeTreeLimit       Code = "tree_limit"       // bound on jobs of a tree
	CodeDepthLimit      Code = "depth_limit"      // bound on depth
	CodeQuota           Code = "quota"            // bound on one uid's share
	CodeRateLimit       Code = "rate_limit"       // too many requests at once or in a short time; the same one may pass later
	CodeCapacity        Code = "capacity"         // could never fit this host
	CodeWouldBlock      Code = "would_block"      // a wait that could never end
	CodeDiskFloor       Code = "min_free_disk"    // free disk below the configured floor
	CodeBudgetExhausted Code = "budget_exhausted" // nothing left to grant
	CodeWorkspace       Code = "workspace"        // workspace or mount refused
	CodeImage           Code = "image"            // image unknown, not allowed, or unfit
	CodeFrozen          Code = "frozen"           // an operator stopped further jobs
	CodeDraining        Code = "draining"         // the daemon is stopping
	CodeTooLarge        Code = "too_large"        // a body or value over its bound
	CodeEngine          Code = "engine"           // the container engine failed or is away
	CodeUnavailable     Code = "unavailable"      // try again: busy, closing, away
	CodeInternal        Code = "internal"         // a fault of ours
)

// Violation is one field that asked for more than allowed.
type Violation struct {
	Field   string `json:"field"`
	Asked   string `json:"asked"`
	Allowed string `json:"allowed"`
	Why     string `json:"why,omitempty"`
}

// Error is a refusal or fault with a stable code. Message is one line for people: what failed, on which value,
// what would be right.
type Error struct {
	Code       Code
	Field      string // request or config field at fault, if one is
	Message    string
	Hint       string // what to type or change next
	Violations []Violation
	Err        error // cause, for logs; never shown to other callers
}

func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error about a field; field may be empty.
func Errorf(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns e with the hint set.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Wrap makes an Error around a cause that is kept for errors.Is and logs.
func Wrap(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// CodeOf returns the code of the first Error in err's chain, CodeInternal where there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
