package ledgertest

import (
	"maps"
	"testing"

	"sandboxd/internal/store"
)

// Open makes an empty store for one test, named Node, and closes it at the end of the test.
type Open[T any] func(t *testing.T) T

// RunLedger holds a ledger to its contract.
func RunLedger(t *testing.T, open Open[store.Ledger]) {
	tests := map[string]func(*testing.T, store.Ledger){
		"an admitted job is returned whole":                  admitWhole,
		"an admission that only a fault can make is refused": admitFaults,
		"bounds of the queue are exact":                      queueBounds,
		"bounds of the queue hold under concurrency":         queueBoundsConcurrent,
		"a key names one job":                                idempotency,
		"a key submitted 50 times at once names one job":     idempotencyConcurrent,
		"children join their parent's tree":                  children,
		"every pair of states":                               statePairs,
		"a stale attempt or state is fenced":                 fencing,
		"a job is claimed once":                              claimOnce,
		"an unclaimed job waits for its next attempt":        unclaim,
		"a job ends once":                                    finishOnce,
		"times given at the end win over those stored":       finishTimes,
		"cancel by state":                                    cancelByState,
		"the first reason stays and a kill strengthens":      cancelTwice,
		"an unclaimed job with a cancel ends":                unclaimCancelled,
		"cancel racing finish ends a job once, 1000 times":   cancelRacesFinish,
		"cancel racing claim leaves one winner":              cancelRacesClaim,
		"the queue is in order of age and of this node":      queueOrder,
		"rows of another node are left alone":                foreignNode,
		"listing filters":                                    listing,
		"listing pages newest first":                         paging,
		"listings leave out what is large":                   listingIsLight,
		"references resolve":                                 resolve,
		"events of an owner have no gaps":                    eventsWithoutGaps,
		"events tell the life of a job":                      eventsOfALife,
		"an event beside those of the life":                  toldBeside,
		"a job lists itself and its descendants":             jobsListDescendants,
		"a job resolves itself and its descendants":          jobsResolveDescendants,
		"a job is told of itself and its descendants":        eventsOfDescendants,
		"a tree of 16 edges is seen to its end":              deepTree,
		"counts":                                             counts,
		"a context that ended before writes nothing":         deadContext,
	}
	maps.Copy(tests, treeTests)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// RunNodeState holds a node state to its contract.
func RunNodeState(t *testing.T, open Open[store.NodeState]) {
	for name, test := range map[string]func(*testing.T, store.NodeState){
		"each boot is one more":                 boots,
		"the instance id is stable":             instance,
		"slots are kept as last put":            slots,
		"the journal keeps the first of a step": journal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}
