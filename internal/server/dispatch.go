package server

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"sandboxd/internal/job"
)

// table is the route table, constant.
var table = routes()

// ServeHTTP answers one request: finds its route, checks what is common to all, and turns errors into problems.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := r.Context().Value(connKey{}).(*conn)
	caller := from.caller
	x := &exchange{ctx: r.Context(), r: r, rc: http.NewResponseController(w), caller: caller, meter: from.meter}
	x.w = &writer{ResponseWriter: w, rc: x.rc, limit: s.cfg.WriteTimeout}
	number := s.number.Add(1)
	x.log = s.cfg.Log.With().Uint64(keyRequest, number).Str(keyMethod, showKey(r.Method)).
		Str(keyCaller, caller.Principal).Int32(keyPID, caller.PID).Logger()
	if !s.begin() {
		x.fail(errClosing, number)
		return
	}
	defer s.active.Done()
	started := time.Now()
	err := s.answer(x)
	if err != nil {
		x.fail(err, number)
	}
	x.log.Debug().Int(keyStatus, x.w.status).Int64(keyMS, time.Since(started).Milliseconds()).Msg("request")
}

// answer runs the handler of the request's route.
func (s *Server) answer(x *exchange) (err error) {
	defer func() {
		if p := recover(); p != nil {
			x.log.Error().Interface(keyPanic, p).Bytes(keyStack, debug.Stack()).Msg("a handler panicked")
			err = job.Errorf(job.CodeInternal, "", "panic")
		}
	}()
	if err := x.meter.pass(); err != nil {
		return err
	}
	found, ref := find(table, x.r.URL.EscapedPath())
	if len(found) == 0 {
		return errNoPath
	}
	x.ref = ref
	for _, r := range found {
		if r.method == x.r.Method {
			x.log = x.log.With().Str(keyRoute, r.path).Logger()
			return s.run(x, r)
		}
	}
	allow := allowed(found)
	x.w.Header().Set("Allow", allow)
	x.hangUp()
	writeProblem(x.w, methodProblem(x.r.Method, allow))
	return nil
}

func (s *Server) run(x *exchange, r route) (err error) {
	done, err := x.meter.begin(r.lasting)
	if err != nil {
		return err
	}
	defer done()
	if r.body == noBody && x.r.ContentLength != 0 {
		return job.Errorf(job.CodeInvalid, "", "%s %s takes no body", r.method, r.path)
	}
	if x.query, err = parseQuery(x.r.URL.RawQuery, r.params); err != nil {
		return err
	}
	if r.lasting {
		ctx, cancel := context.WithCancelCause(x.ctx)
		defer cancel(nil)
		defer context.AfterFunc(s.closing, func() { cancel(errClosing) })()
		x.ctx = ctx
	}
	return r.handle(s, x)
}

// fail answers with a problem, or breaks off a reply that has begun, so that it cannot be taken for a whole one. It
// also writes where the client may have gone: the request's context ends with a read that timed out, too.
func (x *exchange) fail(err error, number uint64) {
	if x.w.status != 0 {
		x.level(err).Err(err).Msg("a reply broke off")
		panic(http.ErrAbortHandler)
	}
	if x.stopping() {
		err = errClosing
	}
	p := problemOf(err, number)
	if p.Status >= http.StatusInternalServerError {
		x.level(err).Err(err).Str(keyCode, p.Code).Msg("a request failed")
	}
	if x.r.ContentLength != 0 && !x.wholeBody {
		x.hangUp()
	}
	writeProblem(x.w, p)
}

func (x *exchange) level(err error) *zerolog.Event {
	var e *job.Error
	switch {
	case x.r.Context().Err() != nil, job.CodeOf(err) == job.CodeDraining:
		return x.log.Debug()
	case errors.As(err, &e) && e.Code != job.CodeInternal:
		return x.log.Warn()
	}
	return x.log.Error()
}

// drainTime is for a body nobody wants, which net/http reads a little of before it replies.
const drainTime = 250 * time.Millisecond

// hangUp ends the connection after this reply.
func (x *exchange) hangUp() {
	x.w.Header().Set("Connection", "close")
	_ = x.rc.SetReadDeadline(time.Now().Add(drainTime)) // fails only where the connection is gone
}
