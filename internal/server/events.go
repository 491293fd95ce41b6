package server

import (
	"math"
	"time"

	"sandboxd/api"
)

// eventPage is how many events are read at a time.
const eventPage = 256

// events is GET /v1/events.
func (s *Server) events(x *exchange) error {
	after, err := x.query.number("after", 0, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	follow, err := x.query.flag("follow")
	if err != nil {
		return err
	}
	look := time.NewTicker(s.cfg.PollEvents)
	defer look.Stop()
	for {
		page, err := s.cfg.Records.Events(x.ctx, x.viewer(), after, eventPage)
		switch {
		case err != nil && x.stopping():
			return nil
		case err != nil:
			return err
		case x.w.status == 0:
			x.begin(api.EventsType, s.cfg.StallTimeout)
		}
		for _, e := range page {
			line, err := marshal(FromEvent(e))
			if err != nil {
				return err
			}
			if _, err := x.w.Write(line); err != nil {
				return err
			}
			after = e.Seq
		}
		x.w.flush()
		switch {
		case len(page) == eventPage:
			continue
		case !follow:
			return nil
		}
		select {
		case <-look.C:
		case <-x.ctx.Done():
			return nil
		}
	}
}
