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
		meant := nearest(name, flagNames(cmd))
		if meant != "" {
			meant = dashed(meant)
		}
		return &usageError{text: cmd.Name + ": there is no flag " + dashed(name), meant: meant, help: cmd.FullName() + " --help"}
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

// nearest returns the name that was probably meant, or nothing: one that differs in case only, begins with the word, or
// differs from it by at most two slips.
func nearest(word string, names []string) string {
	best, bestAt := "", 3
	for _, name := range names {
		if strings.EqualFold(name, word) {
			return name
		}
		if len(word) >= 3 && len(name) > len(word) && strings.HasPrefix(name, word) {
			return name
		}
		if d := slips(word, name); d < bestAt && 2*d < len(name) {
			best, bestAt = name, d
		}
	}
	return best
}

// slips counts the insertions, deletions and replacements, and swaps of neighbours, between two words.
func slips(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	var before, last []int
	for i := 0; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		for j := range row {
			switch {
			case i == 0 || j == 0:
				row[j] = i + j
				continue
			case a[i-1] == b[j-1]:
				row[j] = last[j-1]
			default:
				row[j] = 1 + min(last[j-1], last[j], row[j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
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
