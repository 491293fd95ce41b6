package envelope

import (
	"slices"
	"strings"

	"sandboxd/internal/job"
)

// Words of trust. Only the exact word trusted counts; anything else is untrusted.
const (
	Untrusted = "untrusted"
	Trusted   = "trusted"
)

// TrustOf reads a word of trust: everything but the exact word trusted is untrusted.
func TrustOf(word string) string {
	if word == Trusted {
		return Trusted
	}
	return Untrusted
}

// The other words of an envelope.
const (
	SingleTurn      = "single_turn" // the one mode there is
	EgressNone      = "none"
	BudgetShare     = "share"    // the tree has one pot
	BudgetOperator  = "operator" // each job gets the operator's limits anew; nothing is charged upward
	GitRO           = "ro"
	GitRW           = "rw"
	RiskSafe        = "safe"
	RiskLocalWrite  = "local_write"
	RiskEgress      = "network_egress"
	RiskUpload      = "network_upload"
	RiskCode        = "code_execution"
	everything      = "*"
	maxNames        = 256
	maxNameBytes    = 255
	maxPathBytes    = 4095
	reservedEnvName = "SANDBOXD_"
)

// scale is a closed list of words, the narrowest first. A word that is not in it binds as the narrowest.
type scale[T ~string] []T

var (
	modes        = scale[job.WorkspaceMode]{job.WorkspaceRO, job.WorkspaceOverlay, job.WorkspaceRW}
	gitModes     = scale[string]{GitRO, GitRW}
	trusts       = scale[string]{Untrusted, Trusted}
	egressModes  = scale[string]{EgressNone}
	inherits     = scale[string]{BudgetShare, BudgetOperator}
	turns        = scale[string]{SingleTurn}
	risks        = scale[string]{RiskSafe, RiskLocalWrite, "install", RiskEgress, RiskUpload, RiskCode, "system_write", "persistence", "unknown", "destructive", "blocked"}
	runtimeOrder = scale[string]{RuntimeRunsc, RuntimeRunc} // the strongest first
)

// Risks lists the words of max_risk, the lowest first.
func Risks() []string { return slices.Clone(risks) }

// WorkspaceModes lists the modes of a workspace, the narrowest first.
func WorkspaceModes() []string {
	out := make([]string, len(modes))
	for i, m := range modes {
		out[i] = string(m)
	}
	return out
}

// Runtimes lists the runtimes, the strongest first.
func Runtimes() []string { return slices.Clone(runtimeOrder) }

// Below reports whether the most that max_risk allows is lower than the word.
func (b Bounds) Below(risk string) bool { return risks.rank(b.MaxRisk) < risks.rank(risk) }

func (s scale[T]) has(word T) bool { return slices.Contains(s, word) }

func (s scale[T]) rank(word T) int { return max(slices.Index(s, word), 0) }

func (s scale[T]) within(child, above T) bool { return s.rank(child) <= s.rank(above) }

// least returns the word itself, or the narrowest for what is no word.
func (s scale[T]) least(word T) T { return s[s.rank(word)] }

func (s scale[T]) meet(a, b T) T { return s[min(s.rank(a), s.rank(b))] }

func (s scale[T]) list() string {
	words := make([]string, len(s))
	for i, w := range s {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}

// order is the order of the words. A child's word that is none and not missing either is within itself alone, for
// nobody knows how it would be read.
func (s scale[T]) order() order[T] {
	return order[T]{
		within: func(child, above T) bool {
			return child == above || (child == "" || s.has(child)) && s.within(child, above)
		},
		meet: s.meet,
		show: func(w T) string {
			if w == "" {
				return string(s[0])
			}
			return string(w)
		},
	}
}

// trustOrder reads every word as trusted or untrusted.
var trustOrder = order[string]{within: trusts.within, meet: trusts.meet, show: TrustOf}
