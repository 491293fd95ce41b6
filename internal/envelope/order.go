package envelope

import (
	"slices"
	"strconv"
	"strings"
)

// order is what is known of the values of one kind of field: child ⊑ above, the widest that is within both, how a value
// is shown. say, where it is set, words a refusal better than the two values whole.
type order[T any] struct {
	within func(child, above T) bool
	meet   func(a, b T) T
	show   func(T) string
	say    func(child, above T) (asked, allowed string)
}

// field is one line of the table of fields.
type field struct {
	name  string // in Fields, Origins and configs
	path  string // of the Go field it orders
	asked string // how a request names it

	show    func(*Envelope) string
	over    func(child, above *Envelope) (asked, allowed string, over bool)
	tighten func(e, by *Envelope) (changed bool)
	take    func(e, from *Envelope)
}

// within is a field of any kind, read and written by functions.
func within[T any](name, path, asked string, get func(*Envelope) T, set func(*Envelope, T), o order[T]) field {
	if o.say == nil {
		o.say = func(child, above T) (string, string) { return o.show(child), o.show(above) }
	}
	return field{
		name: name, path: path, asked: asked,
		show: func(e *Envelope) string { return o.show(get(e)) },
		over: func(child, above *Envelope) (string, string, bool) {
			c, a := get(child), get(above)
			if o.within(c, a) {
				return "", "", false
			}
			asked, allowed := o.say(c, a)
			return asked, allowed, true
		},
		tighten: func(e, by *Envelope) bool {
			before := get(e)
			set(e, o.meet(before, get(by)))
			return !o.within(before, get(e))
		},
		take: func(e, from *Envelope) { set(e, get(from)) },
	}
}

// at is a field that is a variable of the envelope.
func at[T any](name, path, asked string, v func(*Envelope) *T, o order[T]) field {
	return within(name, path, asked, func(e *Envelope) T { return *v(e) }, func(e *Envelope, t T) { *v(e) = t }, o)
}

func atMost(show func(int64) string) order[int64] {
	return order[int64]{
		within: func(child, above int64) bool { return child <= above },
		meet:   func(a, b int64) int64 { return min(a, b) },
		show:   show,
		say:    func(child, above int64) (string, string) { return show(child), "at most " + show(above) },
	}
}

// noBeforeYes orders leave that is given or not.
var noBeforeYes = order[bool]{
	within: func(child, above bool) bool { return !child || above },
	meet:   func(a, b bool) bool { return a && b },
	show:   strconv.FormatBool,
}

// leased orders a lease by its absence: a job with one is the narrower.
var leased = order[bool]{within: noBeforeYes.within, meet: noBeforeYes.meet, show: func(detached bool) string { return strconv.FormatBool(!detached) }}

// strength orders runtimes; an unknown one is within itself alone.
var strength = order[string]{
	within: func(child, above string) bool {
		return child == above || runtimeOrder.has(child) && runtimeOrder.has(above) && runtimeOrder.within(child, above)
	},
	meet: func(a, b string) string {
		if !runtimeOrder.has(a) || !runtimeOrder.has(b) {
			return a
		}
		return runtimeOrder.meet(a, b)
	},
	show: func(s string) string { return s },
}

// names is an order of sets, by inclusion. same says when two names are one.
func names(same func(a, b string) bool) order[[]string] {
	in := func(set []string, name string) bool {
		return slices.ContainsFunc(set, func(have string) bool { return have == everything || same(have, name) })
	}
	rest := func(child, above []string) (out []string) {
		for _, name := range child {
			if !in(above, name) {
				out = append(out, name)
			}
		}
		return out
	}
	return order[[]string]{
		within: func(child, above []string) bool { return len(rest(child, above)) == 0 },
		meet:   func(a, b []string) []string { return meetSets(a, b, in) },
		show:   showNames,
		say:    func(child, above []string) (string, string) { return showNames(rest(child, above)), showNames(above) },
	}
}

// meetSets keeps of each set what is in the other, once.
func meetSets(a, b []string, in func([]string, string) bool) []string {
	var out []string
	for _, side := range [][2][]string{{a, b}, {b, a}} {
		for _, name := range side[0] {
			if in(side[1], name) && !slices.Contains(out, name) && !in(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func equal(a, b string) bool { return a == b }

// atLeast orders sets that grow from parent to child.
var atLeast = order[[]string]{
	within: func(child, above []string) bool { return names(equal).within(above, child) },
	meet: func(a, b []string) []string {
		out := slices.Clone(a)
		for _, name := range b {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		return out
	},
	show: showNames,
	say: func(child, above []string) (string, string) {
		return showNames(child), "at least " + showNames(above)
	},
}

// maxShown bounds how many names stand in a refusal.
const maxShown = 16

func showNames(set []string) string {
	if len(set) == 0 {
		return "none"
	}
	if slices.Contains(set, everything) {
		return "all"
	}
	shown := set[:min(len(set), maxShown)]
	out := strings.Join(shown, ", ")
	if more := len(set) - len(shown); more > 0 {
		out += " and " + strconv.Itoa(more) + " more"
	}
	return out
}
