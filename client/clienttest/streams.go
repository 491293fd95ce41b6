package clienttest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"sandboxd/api"
)

func (d *Daemon) result(w http.ResponseWriter, r *http.Request, j *fakeJob) {
	done := func() bool { return j.job.State == "done" }
	if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil && !d.now().QuickNotYet {
		ctx, cancel := context.WithTimeout(r.Context(), wait)
		defer cancel()
		d.until(ctx.Done(), done)
		d.mu.Lock()
		d.faults.MuteWaits--
		mute := d.faults.MuteWaits >= 0
		d.mu.Unlock()
		if mute {
			<-r.Context().Done()
			return
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !done() {
		reply(w, http.StatusAccepted, j.job)
		return
	}
	reply(w, http.StatusOK, resultOf(j))
}

func (d *Daemon) stdin(w http.ResponseWriter, r *http.Request, j *fakeJob) {
	defer w.WriteHeader(http.StatusNoContent)
	buf := make([]byte, 4096)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 {
			select {
			case j.stdinOpen <- append([]byte(nil), buf[:n]...):
			case <-j.done: // the command has ended without reading this
				return
			}
		}
		if err == io.EOF {
			close(j.stdinOpen)
			return
		}
		if err != nil {
			return
		}
	}
}

func (d *Daemon) stream(w http.ResponseWriter, r *http.Request, j *fakeJob) {
	q := r.URL.Query()
	from, _ := strconv.ParseUint(q.Get("from"), 10, 64)
	d.mu.Lock()
	d.streams++
	f := d.faults
	d.mu.Unlock()
	if from > 0 {
		from -= min(from, f.Overlap)
	}
	w.Header().Set("Content-Type", api.StreamType)
	w.WriteHeader(http.StatusOK)
	flush := func() { _ = http.NewResponseController(w).Flush() }
	flush()
	var out io.Writer = w
	if f.CutStream > 0 {
		out = &limited{w, f.CutStream}
	}
	if f.BadRecords {
		_, _ = out.Write(make([]byte, 100))
		return
	}
	for i := 0; ; i++ {
		ready := func() bool { return i < len(j.stream) || j.job.State == "done" }
		if q.Get("follow") == "true" && !d.until(r.Context().Done(), ready) {
			panic(http.ErrAbortHandler)
		}
		d.mu.Lock()
		rec, end, done := api.Record{Kind: api.KindEnd, Offset: j.end}, i >= len(j.stream), j.job.State == "done"
		if !end {
			rec = j.stream[i]
		}
		d.mu.Unlock()
		if end && (!done || f.NoEndRecord) {
			return // without follow, of a job that is not done
		}
		if err := send(out, rec, from, q.Get("stream"), end); err != nil {
			flush()
			panic(http.ErrAbortHandler)
		}
		flush()
		if end {
			return
		}
	}
}

func send(w io.Writer, rec api.Record, from uint64, only string, end bool) error {
	kinds := map[string]uint8{"stdout": api.KindStdout, "stderr": api.KindStderr}
	if kind, filtered := kinds[only]; filtered && rec.Kind <= api.KindStderr && rec.Kind != kind {
		return nil
	}
	if size := uint64(len(rec.Payload)); !end && rec.Kind != api.KindGap {
		if rec.Offset+size <= from {
			return nil
		}
		if rec.Offset < from {
			rec.Payload = rec.Payload[from-rec.Offset:]
			rec.Offset = from
		}
	}
	b := make([]byte, api.StreamHeaderSize, api.StreamHeaderSize+len(rec.Payload))
	rec.PutHeader(b, len(rec.Payload))
	_, err := w.Write(append(b, rec.Payload...))
	return err
}

func (d *Daemon) listEvents(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, _ := strconv.Atoi(q.Get("after"))
	w.Header().Set("Content-Type", api.EventsType)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte("\n")) // a heartbeat
	cutAfter := d.now().CutEvents
	for sent := 0; ; {
		if q.Get("follow") == "true" && !d.until(r.Context().Done(), func() bool { return len(d.events) > after }) {
			return
		}
		d.mu.Lock()
		if len(d.events) <= after {
			d.mu.Unlock()
			return
		}
		b, _ := json.Marshal(d.events[after])
		d.mu.Unlock()
		if cutAfter > 0 && sent == cutAfter {
			_, _ = w.Write(b[:len(b)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(append(b, '\n'))
		_ = http.NewResponseController(w).Flush()
		after++
		sent++
	}
}
