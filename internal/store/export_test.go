package store

// ListText is the query behind Jobs, for a test of how SQLite would run it.
func ListText(v Viewer, f Filter) (text string, args []any) {
	q := listQuery(v, f)
	return q.text(), q.args
}

// QueuedText is the query behind Queued.
const QueuedText = queryQueued

// JobEventsText is the query behind Events for a job.
const JobEventsText = queryJobEvents
