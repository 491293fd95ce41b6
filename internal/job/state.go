package job

import "fmt"

// State is where a job stands: queued → starting → running ⇄ waiting → finishing → done.
type State string

// The states.
const (
	Queued    State = "queued"
	Starting  State = "starting"
	Running   State = "running"
	Waiting   State = "waiting" // blocked on its own children or on an answer
	Finishing State = "finishing"
	Done      State = "done" // sticky; carries an outcome
)

// States lists all states in the order of a life.
func States() []State { return []State{Queued, Starting, Running, Waiting, Finishing, Done} }

// legal is the one transition table. A job may end from any state but done. Starting falls back to queued only
// where no command was handed over (unclaim at shutdown or after a crash).
var legal = map[State][]State{
	Queued:    {Starting, Done},
	Starting:  {Running, Queued, Finishing, Done},
	Running:   {Waiting, Finishing, Done},
	Waiting:   {Running, Finishing, Done},
	Finishing: {Done},
	Done:      {},
}

// TransitionError says that a job may not go from one state to another.
type TransitionError struct{ From, To State }

func (e *TransitionError) Error() string {
	return fmt.Sprintf("a job cannot go from %q to %q", string(e.From), string(e.To))
}

// CheckTransition returns a *TransitionError unless from → to is legal.
func CheckTransition(from, to State) error {
	for _, s := range legal[from] {
		if s == to {
			return nil
		}
	}
	return &TransitionError{from, to}
}

// Live reports whether a job in this state holds, or may hold, a container.
func (s State) Live() bool { return s == Starting || s == Running || s == Waiting || s == Finishing }

// Valid reports whether s is one of the states.
func (s State) Valid() bool { _, ok := legal[s]; return ok }
