package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// Bytes of request bodies held in memory at once, in all and for one principal. Decoding multiplies them by a small
// factor, so they bound what callers can make the daemon allocate. Jobs have half as much, apart from the host's users.
const (
	bodyBytes    = 48 << 20         // a quarter for one principal
	bodyPatience = 10 * time.Second // a request waits for room at most this long
	bodyLeast    = 64 << 10         // room taken by the smallest body, its decoded form included
)

// bodies hands out room for request bodies, fairly among principals.
type bodies struct {
	all     *semaphore.Weighted
	shareOf int64 // of one principal

	mu  sync.Mutex
	one map[string]*share // by principal, while it has requests
}

type share struct {
	room  *semaphore.Weighted
	users int
}

func newBodies(all int64) *bodies {
	return &bodies{all: semaphore.NewWeighted(all), shareOf: max(all/4, api.MaxBodyBytes), one: make(map[string]*share)}
}

// take waits for room for n bytes. The principal's own share comes first, so that its waiting requests block nobody.
func (b *bodies) take(ctx context.Context, principal string, n int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, bodyPatience)
	defer cancel()
	mine := b.join(principal)
	if err := mine.room.Acquire(ctx, n); err != nil {
		b.leave(principal)
		return nil, busy(err, "your other requests")
	}
	if err := b.all.Acquire(ctx, n); err != nil {
		mine.room.Release(n)
		b.leave(principal)
		return nil, busy(err, "other requests")
	}
	return func() {
		b.all.Release(n)
		mine.room.Release(n)
		b.leave(principal)
	}, nil
}

func busy(err error, with string) error {
	return job.Wrap(job.CodeUnavailable, err, "the daemon is busy reading %s", with).WithHint("try again in a moment")
}

func (b *bodies) join(principal string) *share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.one[principal]
	if s == nil {
		s = &share{room: semaphore.NewWeighted(b.shareOf)}
		b.one[principal] = s
	}
	s.users++
	return s
}

func (b *bodies) leave(principal string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.one[principal]; s.users == 1 {
		delete(b.one, principal)
	} else {
		s.users--
	}
}

// readBody reads a whole body within the body deadline and its bound. release gives its room back; the caller keeps
// it for as long as it holds the body or what was decoded from it.
func (s *Server) readBody(x *exchange) (body []byte, release func(), err error) {
	n := x.r.ContentLength
	if n > api.MaxBodyBytes {
		return nil, nil, bodyTooLarge(api.MaxBodyBytes)
	}
	if n < 0 {
		n = api.MaxBodyBytes
	}
	room, principal := s.bodies, x.caller.Principal
	if x.caller.Job != "" { // the jobs of one owner share, so that they cannot take what others need
		room, principal = s.inside, strconv.FormatUint(uint64(x.caller.UID), 10)
	}
	release, err = room.take(x.ctx, principal, max(n, bodyLeast))
	if err != nil {
		return nil, nil, err
	}
	if body, err = x.readAll(s.cfg.BodyTimeout, api.MaxBodyBytes); err != nil {
		release()
		return nil, nil, err
	}
	return body, release, nil
}

func (x *exchange) readAll(timeout time.Duration, limit int64) ([]byte, error) {
	if err := x.rc.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, bodyTooLarge(limit)
	case err != nil:
		return nil, job.Wrap(job.CodeInvalid, err, "the body did not arrive whole within %s", api.Duration(timeout))
	}
	x.wholeBody = true
	return body, x.rc.SetReadDeadline(time.Time{})
}

func bodyTooLarge(limit int64) error {
	return job.Errorf(job.CodeTooLarge, "", "the body has more than %d bytes", limit).
		WithHint("stdin of any size can be sent with PUT /v1/jobs/{ref}/stdin")
}
