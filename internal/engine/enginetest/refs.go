package enginetest

import (
	"regexp"
	"strings"

	"sandboxd/internal/engine"
)

var refForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:/@-]*$`)

func goodRef(ref string) error {
	if !refForm.MatchString(ref) || strings.Contains(ref, "..") || strings.Contains(ref, "//") {
		return because(engine.Invalid, "not an image id or name")
	}
	return nil
}

// withTag adds the tag the engine assumes.
func withTag(ref string) string {
	if strings.Contains(ref, "@") || strings.Contains(ref[strings.LastIndex(ref, "/")+1:], ":") {
		return ref
	}
	return ref + ":latest"
}
