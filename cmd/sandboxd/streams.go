package main

import (
	"context"
	"errors"
	"io"
	"time"

	"sandboxd/api"
	"sandboxd/internal/job"
	"sandboxd/internal/results"
	"sandboxd/internal/server"
)

// streams gives the results room the words of the server.
type streams struct {
	logs *results.Logs
	done func(job.ID) <-chan struct{} // closed when the job has ended
}

// How often a follower of a job that has no stream yet looks again: often at first, for most jobs start at once.
const (
	lookSoon  = 5 * time.Millisecond
	lookLater = 200 * time.Millisecond
)

// Copy implements server.Streams.
func (s streams) Copy(ctx context.Context, id job.ID, w io.Writer, o server.StreamOptions, flush func()) error {
	r, err := s.open(ctx, id, o)
	if err != nil {
		return err
	}
	if r == nil {
		return noStream(w, o)
	}
	return s.copy(ctx, r, id, w, o, flush)
}

// copy copies until the stream has ended. A stream that never gets its end (the daemon was killed between a job's end
// and its own) is over a while after its job is.
func (s streams) copy(ctx context.Context, r *results.Reader, id job.ID, w io.Writer, o server.StreamOptions, flush func()) error {
	live, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Follow {
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			select {
			case <-s.done(id):
			case <-stop:
				return
			}
			select {
			case <-time.After(endAfterDone):
				cancel(errOver)
			case <-stop:
			}
		}()
	}
	err := copyAll(live, r, w, o, flush)
	o.From = r.Offset()
	_ = r.Close()
	if err == nil || !errors.Is(context.Cause(live), errOver) {
		return err
	}
	if r, err = s.logs.Reader(id, o.From); err != nil {
		return err
	}
	defer r.Close()
	o.Follow = false
	if err := copyAll(ctx, r, w, o, flush); err != nil {
		return err
	}
	o.From, o.Follow = r.Offset(), true
	return noStream(w, o)
}

var errOver = errors.New("the job is over")

// endAfterDone is how long after its job a stream may take to end.
const endAfterDone = 5 * time.Second

func copyAll(ctx context.Context, r *results.Reader, w io.Writer, o server.StreamOptions, flush func()) error {
	r.Flush = func() error { flush(); return nil }
	if o.Records && o.Stdout && o.Stderr {
		return r.CopyRecords(ctx, w, o.Follow)
	}
	if o.Records {
		return copySome(ctx, r, w, o, flush)
	}
	kinds := results.Kinds(0)
	if o.Stdout {
		kinds |= results.OnlyStdout
	}
	if o.Stderr {
		kinds |= results.OnlyStderr
	}
	_, err := r.CopyRaw(ctx, w, kinds, o.Follow)
	return err
}

// open waits for the stream when it is to be followed; nil where the job ended without one.
func (s streams) open(ctx context.Context, id job.ID, o server.StreamOptions) (*results.Reader, error) {
	done := s.done(id)
	for wait := lookSoon; ; wait = min(wait*2, lookLater) {
		ended := false
		select {
		case <-done:
			ended = true
		default:
		}
		r, err := s.logs.Reader(id, o.From)
		if err == nil || job.CodeOf(err) != job.CodeNotFound {
			return r, err
		}
		if ended || !o.Follow {
			return nil, nil
		}
		select {
		case <-done:
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// noStream is the output of a job that never had any: complete and empty.
func noStream(w io.Writer, o server.StreamOptions) error {
	if !o.Records || !o.Follow {
		return nil
	}
	return writeRecord(w, api.Record{Offset: o.From, Time: time.Now().UnixNano(), Kind: api.KindEnd})
}

// copySome copies the records of one stream; gap and end records belong to both.
func copySome(ctx context.Context, r *results.Reader, w io.Writer, o server.StreamOptions, flush func()) error {
	for {
		rec, err := r.Next(ctx, o.Follow)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Kind == results.KindStdout && !o.Stdout || rec.Kind == results.KindStderr && !o.Stderr {
			continue
		}
		if err := writeRecord(w, api.Record{Offset: rec.Offset, Time: rec.Time, Kind: rec.Kind, Payload: rec.Payload}); err != nil {
			return err
		}
		flush()
	}
}

func writeRecord(w io.Writer, rec api.Record) error {
	b := make([]byte, api.StreamHeaderSize, api.StreamHeaderSize+len(rec.Payload))
	rec.PutHeader(b, len(rec.Payload))
	_, err := w.Write(append(b, rec.Payload...))
	return err
}
