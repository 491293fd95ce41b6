package client

import (
	"errors"
	"fmt"
	"strings"

	"sandboxd/api"
)

// Codes this client makes decisions on, or makes itself. The daemon knows more; they are in Error.Code.
const (
	CodeInvalid     = "invalid"
	CodeNotFound    = "not_found"
	CodeConflict    = "conflict"
	CodeDraining    = "draining"
	CodeUnavailable = "unavailable"
	CodeRateLimit   = "rate_limit"
)

// Error is a refusal or a fault that the daemon reported, or a reference refused before it was sent.
type Error struct{ api.Problem }

// Error is one line: what was refused, what was asked and allowed. The hint is left to the caller.
func (e *Error) Error() string {
	s := e.Detail
	if s == "" {
		s = e.Title
	}
	// "ref" and "id" are parts of the path, not of what the caller wrote.
	if e.Field != "" && e.Field != "ref" && e.Field != "id" && !strings.HasPrefix(s, e.Field) {
		s = e.Field + ": " + s
	}
	for _, v := range e.Violations {
		if v.Field == e.Field && strings.Contains(s, v.Asked) && strings.Contains(s, v.Allowed) {
			continue
		}
		s += fmt.Sprintf("; %s: asked %s, allowed %s", v.Field, v.Asked, v.Allowed)
		if v.Why != "" {
			s += " (" + v.Why + ")"
		}
	}
	if s == "" {
		s = fmt.Sprintf("the daemon answered %d", e.Status)
	}
	return s
}

// IsCode reports whether err is an *Error with this code.
func IsCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// ProtocolError is an answer that this client does not understand.
type ProtocolError struct {
	Call   string // method and path
	Detail string
	Err    error
}

func (e *ProtocolError) Error() string {
	s := "the daemon's answer to " + e.Call + " makes no sense to this client: " + e.Detail
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *ProtocolError) Unwrap() error { return e.Err }

// Kinds of SocketError, for errors.Is.
var (
	ErrNoDaemon   = errors.New("no daemon")       // nothing listens on the socket
	ErrPermission = errors.New("no permission")   // the socket may not be used by this user
	ErrForeign    = errors.New("foreign socket")  // another product, or another API version
	ErrLost       = errors.New("connection lost") // the daemon went away in mid-call
	ErrNoAnswer   = errors.New("no answer")       // the daemon accepts connections and does not answer in time
)

// SocketError says why the socket could not be used.
type SocketError struct {
	Kind   error // ErrNoDaemon, ErrPermission, ErrForeign, ErrLost or ErrNoAnswer
	Socket string
	Detail string // one line for people
	Hint   string // what to type or change next
	Err    error  // the cause, if one is known
}

func (e *SocketError) Error() string { return e.Detail }

// Is reports the kind.
func (e *SocketError) Is(target error) bool { return target == e.Kind }

func (e *SocketError) Unwrap() error { return e.Err }
