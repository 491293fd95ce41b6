package config

import (
	"maps"
	"reflect"
	"slices"
)

// Keys lists every key a file may hold, sections included.
func Keys() []string {
	known := map[string]bool{}
	collectKeys(reflect.TypeFor[file](), nil, known)
	return slices.Sorted(maps.Keys(known))
}
