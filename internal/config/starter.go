package config

import (
	_ "embed"
	"sync"
)

//go:embed profiles.toml
var starterText string

// starter is a section and whether it is of the curated set.
type starter struct {
	fileProfile
	curated bool
}

// starters are the profiles that are there unless a file replaces them.
var starters = sync.OnceValue(func() map[string]starter {
	var f file
	if err := decode(starterText, &f); err != nil {
		panic("config: the embedded profiles.toml: " + err.Error()) // a test reads it
	}
	out := map[string]starter{}
	for name, s := range f.Profiles {
		out[name] = starter{s, true}
	}
	return out
})

// StarterProfiles is the text of the curated set, for people to copy from.
func StarterProfiles() string { return starterText }
