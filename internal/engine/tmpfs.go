package engine

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	amountForm = regexp.MustCompile(`^[1-9][0-9]*[kKmMgG]?$`) // tmpfs takes 0 for unlimited
	idForm     = regexp.MustCompile(`^[0-9]{1,10}$`)
	modeForm   = regexp.MustCompile(`^[0-7]{3,5}$`)
)

// tmpfsValues are the options with a value and its form; the bare words are those of tmpfsWords.
var (
	tmpfsValues = map[string]*regexp.Regexp{"size": amountForm, "nr_inodes": amountForm, "uid": idForm, "gid": idForm, "mode": modeForm}
	tmpfsWords  = map[string]bool{"rw": true, "ro": true, "nosuid": true, "nodev": true, "noexec": true, "exec": true, "noatime": true}
)

// validateTmpfs wants each tmpfs bounded in bytes and inodes, without devices and set-id programs.
func validateTmpfs(c Container) error {
	for _, target := range slices.Sorted(maps.Keys(c.Tmpfs)) {
		field := fmt.Sprintf("Tmpfs[%s]", target)
		if !cleanPath(target) || target == "/" {
			return &FieldError{field, "the target is an absolute, clean path, not /"}
		}
		given := map[string]bool{}
		for option := range strings.SplitSeq(c.Tmpfs[target], ",") {
			key, value, hasValue := strings.Cut(option, "=")
			form := tmpfsValues[key]
			if known := form != nil && hasValue && form.MatchString(value) || tmpfsWords[key] && !hasValue; !known || given[key] {
				return &FieldError{field, fmt.Sprintf("no such option, or given twice: %q", option)}
			}
			given[key] = true
		}
		for _, must := range []string{"size", "nr_inodes", "nosuid", "nodev"} {
			if !given[must] {
				return &FieldError{field, "must hold size, nr_inodes, nosuid and nodev"}
			}
		}
	}
	return nil
}
