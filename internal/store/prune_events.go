package store

import "context"

// pruneEvents deletes the oldest events of an owner up to a number, so that none is missing among those kept. The
// number is that of the first event young enough, raised where too many would stay.
func (s *SQLite) pruneEvents(ctx context.Context, owner string, p PrunePolicy) error {
	for {
		var n int64
		err := s.do(ctx, "prune events", func(t *tx) error {
			var first, last, young int64
			if err := t.row(`SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM events WHERE owner = $1`, []any{owner}, &first, &last); err != nil || last == 0 {
				return err
			}
			upto := min(first+pruneEvents, last+1)
			if err := t.row(`SELECT coalesce(min(seq), $1) FROM events WHERE owner = $2 AND seq < $1 AND time >= $3`, []any{upto, owner, p.OlderThanMS}, &young); err != nil {
				return err
			}
			upto = min(upto, max(young, last-int64(p.MaxEventsPerOwner)+1))
			var err error
			n, err = t.exec(`DELETE FROM events WHERE owner = $1 AND seq < $2`, owner, upto)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}
