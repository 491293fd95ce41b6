package server

import (
	"math"
	"mime"
	"strings"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// stream is GET /v1/jobs/{ref}/stream.
func (s *Server) stream(x *exchange) error {
	o, err := streamOptions(x)
	if err != nil {
		return err
	}
	j, err := s.job(x)
	if err != nil {
		return err
	}
	mediaType := api.BytesType
	if o.Records {
		mediaType = api.StreamType
	}
	if o.Follow { // the client must know at once that it is heard; a queued job may take hours to write
		x.begin(mediaType, s.cfg.StallTimeout)
	} else {
		x.w.limit = s.cfg.StallTimeout
		x.w.Header().Set("Content-Type", mediaType)
	}
	if err := s.cfg.Streams.Copy(x.ctx, j.ID, x.w, o, x.w.flush); err != nil && !x.stopping() {
		return err
	}
	x.w.flush()
	return nil // where the daemon stops: without an end record, so that the client resumes
}

func streamOptions(x *exchange) (o StreamOptions, err error) {
	from, err := x.query.number("from", 0, 0, math.MaxInt64)
	if err != nil {
		return o, err
	}
	o.From = uint64(from)
	if o.Follow, err = x.query.flag("follow"); err != nil {
		return o, err
	}
	switch which := x.query.get("stream"); {
	case which == "both" || !x.query.has("stream"):
		o.Stdout, o.Stderr = true, true
	case which == "stdout":
		o.Stdout = true
	case which == "stderr":
		o.Stderr = true
	default:
		return o, job.Errorf(job.CodeInvalid, "stream", "%.40q is not stdout, stderr or both", which)
	}
	o.Records = accepts(x.r.Header.Values("Accept"), api.StreamType)
	return o, nil
}

// accepts reports whether a media type is named; no wildcard stands for it.
func accepts(headers []string, mediaType string) bool {
	for _, h := range headers {
		for item := range strings.SplitSeq(h, ",") {
			if name, _, err := mime.ParseMediaType(item); err == nil && name == mediaType {
				return true
			}
		}
	}
	return false
}
