package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// The library tells what is wrong with a flag only in words. These are the beginnings of its sentences; a test
// notices when they change.
const (
	libUnknownFlag = "flag provided but not defined: -"
	libNoValue     = "flag needs an argument: "
)

// notHere are flags that people know from docker and that make no sense here.
var notHere = map[string]string{
	"rm":         "a job's container is always removed; leave it out",
	"t":          "a job has no terminal; -i forwards standard input",
	"tty":        "a job has no terminal; -i forwards standard input",
	"it":         "a job has no terminal; -i forwards standard input",
	"ti":         "a job has no terminal; -i forwards standard input",
	"network":    "what a job may reach is its profile's matter; see 'sbx profiles'",
	"net":        "what a job may reach is its profile's matter; see 'sbx profiles'",
	"privileged": "no job is privileged",
	"cap-add":    "no job has capabilities",
	"user":       "a job runs under a user of its own",
	"u":          "a job runs under a user of its own",
	"entrypoint": "the command is given after the flags, and an image's entrypoint is not used",
	"publish":    "a job has no ports",
	"gpus":       "a job has no GPUs",
}

// usageOf turns the library's complaint into ours.
func usageOf(cmd *cli.Command, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, libUnknownFlag); ok {
		name = strings.TrimLeft(name, "-")
		if why, ok := notHere[name]; ok && cmd.Name == "run" {
			return usage(cmd, "there is no flag %s: %s", dashed(name), why)
		}
		e := usage(cmd, "there is no flag %s", dashed(name)).(*usageError) //nolint:errorlint // made on the left
		if near := nearest(name, flagNames(cmd)); near != "" {
			e.meant = dashed(near)
		}
		return e
	}
	if flag, ok := strings.CutPrefix(text, libNoValue); ok {
		return usage(cmd, "%s needs a value", dashed(strings.TrimLeft(flag, "-")))
	}
	return usage(cmd, "%s", text)
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func flagNames(cmd *cli.Command) []string {
	var names []string
	for _, c := range cmd.Lineage() {
		for _, f := range c.Flags {
			names = append(names, f.Names()...)
		}
	}
	return names
}

// nearest returns the name that was probably meant, or nothing: one that begins with the word, or differs from it by
// at most two slips.
func nearest(word string, names []string) string {
	best, bestAt := "", 3
	for _, name := range names {
		if len(word) >= 3 && len(name) > len(word) && strings.HasPrefix(name, word) {
			return name
		}
		if d := slips(word, name); d < bestAt && 2*d < len(name) {
			best, bestAt = name, d
		}
	}
	return best
}

// slips counts the insertions, deletions and replacements between two words.
func slips(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// oneOf checks a word against a closed list.
func oneOf(cmd *cli.Command, flag, word string, list ...string) error {
	for _, w := range list {
		if w == word {
			return nil
		}
	}
	e := &usageError{
		text: fmt.Sprintf("%s: %s: %.40q is none of %s", cmd.Name, flag, word, strings.Join(list, ", ")),
		help: cmd.FullName() + " --help", meant: nearest(word, list),
	}
	return e
}
