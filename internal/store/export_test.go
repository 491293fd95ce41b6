package store

import "sandboxd/internal/job"

// ListText is the query behind Jobs, for a test of how SQLite would run it.
func ListText(v Viewer, f Filter) (text string, args []any) {
	q := listQuery(v, f)
	return q.text(), q.args
}

// QueuedText is the query behind Queued.
const QueuedText = queryQueued

// Queries of the decisions about trees.
const (
	LiveChildrenText = queryLiveChildren
	EndingText       = queryEnding
	PotsText         = queryPots
)

// DescendantsText is the query behind Descendants.
func DescendantsText(id job.ID) (text string, args []any) {
	q := descendantsQuery(id, true)
	return q.text(), q.args
}

// JobEventsText is the query behind Events for a job.
const JobEventsText = queryJobEvents
