// Package budget is the arithmetic of what a tree may spend: limits, pots, grants and their settling, and the exact
// metering of bytes along a chain of ancestors. Amounts are whole numbers of 64 bits and saturate. It does no I/O.
package budget

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// Dim is one dimension of a budget.
type Dim string

// The dimensions. The daemon measures the first five; the agent reports the others, which are accounting, not walls.
const (
	WallMS        Dim = "wall_ms"        // milliseconds of wall clock: one deadline, shared by a tree
	CPUMS         Dim = "cpu_ms"         // milliseconds of processor time
	EgressBytes   Dim = "egress_bytes"   // both directions
	OutputBytes   Dim = "output_bytes"   // written to stdout and stderr
	ArtifactBytes Dim = "artifact_bytes" // handed back as files
	InputTokens   Dim = "input_tokens"
	OutputTokens  Dim = "output_tokens"
	ToolCalls     Dim = "tool_calls"
	CostMicroUSD  Dim = "cost_micro_usd" // millionths of a US dollar
)

// Kind says how a dimension is granted and settled.
type Kind int

// The kinds.
const (
	Shared   Kind = iota + 1 // a deadline: every job has what is left of it, nothing is charged upward
	Ceiling                  // debited at use along the chain of ancestors, exactly; never reserved
	Measured                 // reserved when granted, settled with what the daemon measured
	Reported                 // reserved when granted, settled with the agent's authenticated report
)

// kinds is the only list of dimensions, in the order they are shown.
var kinds = []struct {
	dim  Dim
	kind Kind
}{
	{WallMS, Shared}, {CPUMS, Measured}, {EgressBytes, Ceiling}, {OutputBytes, Ceiling}, {ArtifactBytes, Ceiling},
	{InputTokens, Reported}, {OutputTokens, Reported}, {ToolCalls, Reported}, {CostMicroUSD, Reported},
}

// Dims lists all dimensions in a stable order.
func Dims() []Dim {
	out := make([]Dim, len(kinds))
	for i, k := range kinds {
		out[i] = k.dim
	}
	return out
}

// Kind returns how d is granted and settled; 0 where there is no such dimension.
func (d Dim) Kind() Kind {
	for _, k := range kinds {
		if k.dim == d {
			return k.kind
		}
	}
	return 0
}

// Field is the name of the dimension in requests, configs and refusals.
func (d Dim) Field() string { return "budget." + string(d) }

// reserved reports whether a grant of d is taken out of the parent's pot.
func (d Dim) reserved() bool { return d.Kind() == Measured || d.Kind() == Reported }

// Limits are the most that may be spent, by dimension. A dimension that is absent has no limit of its own; 0 is invalid
// and never means unlimited. Nil Limits are missing ones, not empty ones, and allow nothing.
type Limits map[Dim]int64

// Of returns the limit of a dimension, and whether it has one.
func (l Limits) Of(d Dim) (limit int64, limited bool) {
	if l == nil {
		return 0, true
	}
	limit, limited = l[d]
	return max(limit, 0), limited
}

// Meet returns the tighter of both limits in every dimension.
func (l Limits) Meet(o Limits) Limits {
	if l == nil || o == nil {
		return nil
	}
	out := maps.Clone(l)
	for d, limit := range o {
		if own, limited := l.Of(d); !limited || limit < own {
			out[d] = limit
		}
	}
	return out
}

// Amounts are what was spent, by dimension. Absent means unknown, never 0; so does a negative one.
type Amounts map[Dim]int64

func (a Amounts) of(d Dim) (n int64, known bool) {
	n, known = a[d]
	return n, known && n >= 0
}

// names lists the dimensions of a map in their stable order, unknown ones last.
func names[M ~map[Dim]int64](m M) []Dim {
	out := make([]Dim, 0, len(m))
	for _, k := range kinds {
		if _, ok := m[k.dim]; ok {
			out = append(out, k.dim)
		}
	}
	for _, d := range slices.Sorted(maps.Keys(m)) {
		if d.Kind() == 0 {
			out = append(out, d)
		}
	}
	return out
}

// Show writes an amount of the dimension for people: a span of time, a size, a count.
func (d Dim) Show(n int64) string {
	switch d {
	case WallMS, CPUMS:
		if n > math.MinInt64/int64(time.Millisecond) && n < math.MaxInt64/int64(time.Millisecond) {
			return (time.Duration(n) * time.Millisecond).String()
		}
		return strconv.FormatInt(n, 10) + "ms"
	case EgressBytes, OutputBytes, ArtifactBytes:
		return ShowBytes(n)
	}
	return strconv.FormatInt(n, 10)
}

// ShowBytes writes an amount of bytes with the largest unit that divides it.
func ShowBytes(n int64) string {
	for _, u := range []struct {
		name   string
		factor int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.factor && n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// add saturates at the largest and smallest amount there is.
func add(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}
