package config

import (
	"slices"
	"strings"

	"sandboxd/internal/envelope"
)

// maxRoster is how many times in a row profiles may delegate.
const maxRoster = 16

// checkRosters holds the graph of delegates to be one without cycles, of known names and of bounded depth.
func checkRosters(b *faults, profiles []envelope.Profile) {
	r := rosters{b: b, to: map[string][]string{}, longest: map[string][]string{}}
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.Name
		r.to[p.Name] = p.Allows.Delegates
	}
	slices.Sort(names)
	sound := true
	for _, name := range names {
		sound = sound && !slices.Contains(r.to[name], "*")
		for _, to := range r.to[name] {
			if _, known := r.to[to]; !known && to != "*" { // which was told already
				b.fail("profiles."+name+".delegates", "there is no profile %.64q; there are: %s", to, strings.Join(names, ", "))
				sound = false
			}
		}
	}
	for _, name := range names {
		if sound && !r.walk(name, nil) {
			return
		}
	}
	for _, name := range names {
		if path := r.longest[name]; sound && len(path)-1 > maxRoster {
			b.fail("profiles."+name+".delegates", "%s is %d deep; profiles may delegate at most %d times in a row", show(path), len(path)-1, maxRoster)
			return
		}
	}
}

type rosters struct {
	b       *faults
	to      map[string][]string
	longest map[string][]string // the longest way from a profile that is done
}

// walk goes down from a profile; above are those on the way to it. It reports whether there was no cycle.
func (r *rosters) walk(name string, above []string) bool {
	if at := slices.Index(above, name); at >= 0 {
		r.b.fail("profiles."+name+".delegates", "%s is a cycle; take one of them out", show(append(slices.Clone(above[at:]), name)))
		return false
	}
	if r.longest[name] != nil {
		return true
	}
	way := append(slices.Clone(above), name)
	longest := []string{name}
	for _, to := range r.to[name] {
		if !r.walk(to, way) {
			return false
		}
		if below := r.longest[to]; len(below)+1 > len(longest) {
			longest = append([]string{name}, below...)
		}
	}
	r.longest[name] = longest
	return true
}

func show(path []string) string { return strings.Join(path, " → ") }
