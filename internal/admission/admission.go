package admission

import (
	"context"
	"encoding/json"
	"fmt"

	"sandboxd/internal/budget"
	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// Images resolves an image's name to the id it has now.
type Images interface {
	// Resolve returns sha256:…; an error with code image when there is none by that name or it is unfit, an error
	// with code engine when the engine is away.
	Resolve(ctx context.Context, name string) (id string, err error)
}

// Paths looks at host paths with the caller's own rights.
type Paths interface {
	// Check returns the path with links resolved and whether it is a directory, or a refusal with code workspace.
	Check(ctx context.Context, c job.Caller, path string) (resolved string, dir bool, err error)
}

// Host tells what the host has to spare.
type Host interface {
	FreeDisk() (int64, error) // bytes
}

// Rules is what the operator decided.
type Rules struct {
	Profiles     []envelope.Profile
	Limits       *envelope.Profile // as the widest profile of all; nil where every envelope is known to be within it
	MilliCPUs    int64             // of all running jobs
	Memory       int64
	MinFreeDisk  int64
	MaxQueued    int
	MaxQueuedPer int // per uid
}

// Checker admits requests. It holds no state of its own and is safe for concurrent use.
type Checker struct {
	rules  Rules
	images Images
	paths  Paths
	host   Host
}

// New makes a Checker.
func New(r Rules, i Images, p Paths, h Host) *Checker {
	return &Checker{rules: r, images: i, paths: p, host: h}
}

// Admitted is a request that passed: everything resolved, ready to be stored.
type Admitted struct {
	Spec     job.Spec
	Envelope envelope.Envelope
	Frozen   json.RawMessage // the envelope as stored

	Caps    Caps
	Budget  budget.Limits // of a root, or where each job has the operator's limits anew: all of them; else what is named
	Strict  bool          // refuse what would be cut to what is left
	Inherit string        // envelope.BudgetShare or envelope.BudgetOperator
	Places  int           // that the tree has for children at most
}

// attempt is one request on its way through the checks.
type attempt struct {
	caller job.Caller
	parent *Parent // nil: a host user asks
	req    Request
	above  envelope.Above
	ask    envelope.Request // paths as written at first, then resolved
	places places
	out    Admitted
}

// check is one named step; the first that refuses ends the way.
type check struct {
	name string
	do   func(context.Context, *Checker, *attempt) error
}

// checks in their order: what costs nothing and cannot be helped by waiting first, what asks others last.
var checks = []check{
	{"command", checkCommand},
	{"environment", checkEnv},
	{"words", checkWords},
	{"labels", checkLabels},
	{"modes", checkModes},
	{"profile", checkProfile},
	{"places", checkPlaces},
	{"envelope", checkEnvelope},
	{"capacity", checkCapacity},
	{"disk", checkDisk},
	{"paths", checkPaths},
	{"image", checkImage},
	{"whole", checkWhole},
}

// CheckNames lists the checks in their order.
func CheckNames() []string {
	names := make([]string, len(checks))
	for i, c := range checks {
		names[i] = c.name
	}
	return names
}

// Check passes a request through all checks. parent is the job that asks, nil for a host user. A refusal is a *job.Error;
// nothing was made.
func (c *Checker) Check(ctx context.Context, caller job.Caller, parent *Parent, r Request) (Admitted, error) {
	if parent == nil && caller.Job != "" || parent != nil && (caller.Job == "" || caller.Job != parent.Job.ID) {
		return Admitted{}, fmt.Errorf("admission: %s asks, which is not the parent given", caller.Principal)
	}
	a := &attempt{caller: caller, parent: parent, req: r}
	a.inheritEnv()
	for _, step := range checks {
		if err := step.do(ctx, c, a); err != nil {
			return Admitted{}, err
		}
	}
	frozen, err := json.Marshal(a.out.Envelope)
	if err != nil {
		return Admitted{}, fmt.Errorf("admission: freezing the envelope: %w", err)
	}
	a.out.Frozen = frozen
	return a.out, nil
}

// Bounds returns the queue bounds that the store checks again in the transaction.
func (c *Checker) Bounds() (maxQueued, maxQueuedPerUID int) {
	return c.rules.MaxQueued, c.rules.MaxQueuedPer
}

func invalid(field, format string, args ...any) *job.Error {
	return job.Errorf(job.CodeInvalid, field, format, args...)
}
