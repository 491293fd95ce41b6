package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// connKey leads to the *conn of a request.
type connKey struct{}

// exchange is one request and its reply.
type exchange struct {
	ctx    context.Context // ends with the client, and for a lasting route with the daemon
	w      *writer
	rc     *http.ResponseController
	r      *http.Request
	caller job.Caller
	meter  *meter // of the job that asks
	query  query
	ref    string // as on the wire
	log    zerolog.Logger

	wholeBody bool // was read
}

// writer gives every write a deadline of its own and remembers the status.
type writer struct {
	http.ResponseWriter
	rc     *http.ResponseController
	limit  time.Duration
	status int
}

func (w *writer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.limit)) // fails only where the write does
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.limit)) // fails only where the write does
	return w.ResponseWriter.Write(b)
}

// flush sends what was written, and the header where nothing was.
func (w *writer) flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	_ = w.rc.SetWriteDeadline(time.Now().Add(w.limit))
	_ = w.rc.Flush() // the next write fails too, and is heard
}

// begin sends the header of a reply that goes on.
func (x *exchange) begin(mediaType string, stall time.Duration) {
	x.w.limit = stall
	x.w.Header().Set("Content-Type", mediaType)
	x.w.flush()
}

// stopping reports whether the reply must end because the daemon stops.
func (x *exchange) stopping() bool { return context.Cause(x.ctx) == error(errClosing) }

func (x *exchange) viewer() store.Viewer { return store.ViewerOf(x.caller) }

// job finds the job that the path names among those the caller may see. One that is another's and one that never was
// get the same answer.
func (s *Server) job(x *exchange) (job.Job, error) {
	ref, err := url.PathUnescape(x.ref)
	if err != nil {
		return job.Job{}, badRef("ref", x.ref)
	}
	j, err := s.resolve(x, "ref", ref)
	if err == nil {
		x.log = x.log.With().Str(keyJob, string(j.ID)).Str(keyRoot, string(j.Root)).Logger()
	}
	return j, err
}

func (s *Server) resolve(x *exchange, field, ref string) (job.Job, error) {
	if !soundRef(ref) {
		return job.Job{}, badRef(field, ref)
	}
	j, err := s.cfg.Records.Resolve(x.ctx, x.viewer(), ref)
	if err != nil && job.CodeOf(err) == job.CodeNotFound {
		return job.Job{}, job.Errorf(job.CodeNotFound, field, "no job %q among yours", ref).WithHint("see 'sbx ps --all'")
	}
	return j, err
}

// soundRef reports whether ref can be an id, the beginning of one, or a name.
func soundRef(ref string) bool {
	if ref == "" || len(ref) > api.MaxNameLen || strings.IndexByte("_.-", ref[0]) >= 0 {
		return false
	}
	for _, c := range []byte(ref) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("_.-", c) < 0 {
			return false
		}
	}
	return true
}

func badRef(field, ref string) error {
	return job.Errorf(job.CodeInvalid, field, "%.64q is not a job id, the beginning of one, or a name", ref).
		WithHint("at least %d characters of the id; see 'sbx ps --all'", job.MinPrefix)
}
