package store

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"sandboxd/internal/budget"
	"sandboxd/internal/job"
)

// Trees is the side of a ledger that a job alone has no use for: subtrees, budgets, denials, the operator's freezes.
type Trees interface {
	// Pots returns the budgets of jobs, all at one moment, in the order of the dimensions. A job without a budget is not
	// in the map; a dimension that is neither limited nor spent has no line.
	Pots(ctx context.Context, ids ...job.ID) (map[job.ID][]PotLine, error)
	// Descendants returns the jobs below a job, the deepest first, so that whoever ends them in this order ends children
	// before their parents. live leaves out those that are done. Large parts are left out as by Reader.Jobs.
	Descendants(ctx context.Context, id job.ID, live bool) ([]job.Job, error)
	// Tree returns the counters of a tree; code not_found where there is none of that root.
	Tree(ctx context.Context, root job.ID) (Tree, error)
	// Deny counts a refused request of a job and, within MaxDeniedPerSecond and MaxDeniedTold, tells it as an event
	// "denied" of that job. It returns how many of its whole tree were refused.
	Deny(ctx context.Context, d Denial) (total int, err error)
	// Tell stores an event of a job beside those of its transitions.
	Tell(ctx context.Context, id job.ID, kind string, payload map[string]string, nowMS int64) error
	// Freeze stops further admissions of a scope; those in it that were admitted before go on. A scope that is frozen
	// already stays as it is.
	Freeze(ctx context.Context, f Freeze) error
	// Thaw ends a freeze of a scope, by whomever; one that is not frozen stays as it is.
	Thaw(ctx context.Context, f Freeze) error
	Freezes(ctx context.Context) ([]Freeze, error)
}

// TreeCaps bound a tree, its root included. Zero caps are none, for callers that know no trees; otherwise both are set.
type TreeCaps struct {
	MaxJobs int // ever
	MaxLive int // admitted and not done
}

// Tree are the counters of a tree.
type Tree struct {
	Root     job.ID
	Owner    string
	Version  int64 // grows with every admission and every end
	JobsEver int
	JobsLive int // admitted and not done
	Denied   int // refused requests of its jobs
}

// BudgetAsk is what an admission asks of the budget. A child has one exactly if its parent has.
type BudgetAsk struct {
	// Inherit is envelope.BudgetShare or envelope.BudgetOperator. Below a job that shares all share.
	Inherit string
	// Limits are what a root, or a child under "operator", may spend; they must be set, and a dimension that is absent has
	// no limit. For a child that shares they are what its request names of what its parent has left; nil names nothing.
	Limits budget.Limits

	// The rest is for a child that shares.

	// Most bounds the child whatever it asks, by its profile, say; nil: only what its parent has left does.
	Most   budget.Limits
	Places int  // the places that the tree has free for children, this one's included
	Strict bool // refuse what would be cut
	// OwnUse is what the parent has used so far, by dimension, beyond what its pots say: of what is reserved its own use,
	// which the ledger learns of when it ends; of a ceiling all that its meter counted, its children's use included.
	OwnUse map[string]int64
}

// PotLine is one dimension of a job's budget.
type PotLine struct {
	Dimension string
	Limit     *int64 // nil: none of its own
	Spent     int64  // by its ended children with all below them, and by itself once it has ended
	Granted   int64  // held by its children that have not ended
}

const queryTree = `SELECT owner, version, jobs_ever, jobs_live, denied FROM trees WHERE root = $1`

// Tree implements Trees.
func (s *SQLite) Tree(ctx context.Context, root job.ID) (Tree, error) {
	if err := s.ready(); err != nil {
		return Tree{}, err
	}
	t := Tree{Root: root}
	err := s.read.row(ctx, queryTree, []any{root}, &t.Owner, &t.Version, &t.JobsEver, &t.JobsLive, &t.Denied)
	if errors.Is(err, sql.ErrNoRows) {
		return Tree{}, notFound(string(root))
	}
	return t, s.explain("reading a tree", err)
}

// Descendants implements Trees.
func (s *SQLite) Descendants(ctx context.Context, id job.ID, live bool) ([]job.Job, error) {
	return s.page(ctx, "listing descendants", descendantsQuery(id, live), math.MaxInt)
}

func descendantsQuery(id job.ID, live bool) query {
	q := query{with: withMine, from: "mine m CROSS JOIN jobs j", id: "j.id", order: "j.depth DESC, j.id"}
	q.and("m.id = j.id")
	q.and("j.id <> " + q.arg(id))
	if live {
		q.and("(j.state || '') <> 'done'") // as an expression: the index of open jobs would be the wrong one
	}
	return q
}
