package engine

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/containerd/errdefs"
)

// fail makes the typed error of one call out of what the SDK returned.
func fail(ctx context.Context, op, ref, host string, x *exchange, err error) *Error {
	var typed *Error
	if errors.As(err, &typed) {
		return typed
	}
	e := &Error{Kind: kindOf(ctx, x, err), Op: op, Ref: ref, Unsure: x.unsure(), Err: err}
	if e.Kind == TimedOut {
		// The cause says which deadline it was; both it and the context's own error stay in the chain.
		e.Err = &ended{cause: context.Cause(ctx), plain: ctx.Err()}
		return e
	}
	text := err.Error()
	if lost := x.lost.Load(); lost != nil && e.Unsure {
		text = "the engine at " + host + " hung up: " + (*lost).Error()
	} else if lost != nil {
		text = "no engine answers at " + host + ": " + (*lost).Error()
	}
	e.Err = &said{text: oneLine(text), err: err}
	return e
}

// kindOf sorts by class. What the engine definitely answered comes first: an answer that met the deadline is an answer.
func kindOf(ctx context.Context, x *exchange, err error) Kind {
	switch {
	case errdefs.IsNotFound(err):
		return NotFound
	case errdefs.IsConflict(err):
		return Conflict
	case noSpace(err):
		return NoSpace
	case errdefs.IsInvalidArgument(err):
		return Invalid
	case ctx.Err() != nil:
		return TimedOut
	case errors.Is(err, errNotListed), errors.Is(err, errTooLarge):
		return Internal
	case x.lost.Load() != nil, x.broken.Load(), errdefs.IsUnavailable(err), errors.As(err, new(*noCommonVersion)):
		return Unavailable
	}
	return Internal
}

// noSpaceTexts is the one place that matches the engine's words: it answers 500 for a full disk as for anything else,
// and a full disk must be told apart, for it is cured by freeing space and not by trying again. Seen from graph
// drivers, containerd and layer unpacking: the kernel's words for ENOSPC and EDQUOT.
var noSpaceTexts = []string{"no space left on device", "disk quota exceeded"}

func noSpace(err error) bool {
	text := strings.ToLower(err.Error())
	for _, t := range noSpaceTexts {
		if strings.Contains(text, t) {
			return true
		}
	}
	return false
}

// ended is a call cut off by a deadline or by its caller.
type ended struct{ cause, plain error }

func (e *ended) Error() string   { return e.cause.Error() }
func (e *ended) Unwrap() []error { return []error{e.cause, e.plain} }

// said is the engine's message made fit for a log line; the error itself stays in the chain.
type said struct {
	text string
	err  error
}

func (s *said) Error() string { return s.text }
func (s *said) Unwrap() error { return s.err }

const maxText = 2048

// oneLine cuts a foreign text to one printable line: a container's own command is part of many messages.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s[:min(len(s), 4*maxText)])
	if s = strings.Join(strings.Fields(s), " "); len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + " …"
	}
	return s
}
