package ledgertest

import (
	"testing"

	"sandboxd/internal/store"
)

// treeTests hold a ledger to the contract of its trees: caps, budgets, denials, freezes.
var treeTests = map[string]func(*testing.T, store.Ledger){
	"caps of a tree are exact":                         caps,
	"caps of a tree hold under concurrency":            capsConcurrent,
	"a child of a job that does not run":               childOfIdle,
	"no child below what is ending":                    childOfEnding,
	"a job ends after its children":                    liveChildren,
	"a child racing its parent's end, 200 times":       childRacesEnd,
	"descendants, the deepest first":                   descendants,
	"a root has the budget it is given":                rootBudget,
	"a child draws from what its parent has left":      childBudget,
	"what ended children used counts once":             endedUseCountsOnce,
	"a refused child leaves everything as it was":      refusedChild,
	"what only a fault asks of a budget is refused":    budgetFaults,
	"a grant is settled on every path":                 settlePaths,
	"a job's spending includes its descendants'":       settleUpward,
	"under operator nothing is charged upward":         operatorBudget,
	"amounts saturate":                                 saturation,
	"children at once never get more than there is":    budgetConcurrent,
	"a cancel racing a finish settles once, 200 times": settleOnce,
	"an unclaimed job keeps its grant":                 unclaimKeepsGrant,
	"denials are counted, and told within bounds":      denials,
	"freezes stop admissions of their scope":           freezes,
	"freezes are kept once":                            freezeTwice,
}
