package envelope

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandboxd/internal/job"
)

// Violation is a refused field and the code that this field alone would be refused with.
type Violation struct {
	job.Violation
	Code job.Code
}

func (w *wish) ask(field string) { w.asked = append(w.asked, field) }

func (w *wish) refuse(code job.Code, bad ...job.Violation) {
	for _, v := range bad {
		w.bad = append(w.bad, Violation{v, code})
	}
}

// count reads a number of which 0 is invalid.
func (w *wish) count(field string, from, to *int64) {
	switch {
	case from == nil:
	case *from < 1:
		w.refuse(job.CodeInvalid, job.Violation{Field: field, Asked: strconv.FormatInt(*from, 10), Allowed: "at least 1", Why: "less than the minimum"})
	default:
		w.ask(field)
		*to = *from
	}
}

// word reads one of a closed list; an unknown one is refused, never taken for another.
func word[T ~string](w *wish, field string, from T, to *T, list scale[T]) {
	switch {
	case from == "":
	case !list.has(from):
		w.refuse(job.CodeInvalid, job.Violation{Field: field, Asked: short(string(from)), Allowed: list.list(), Why: "there is no such word"})
	default:
		w.ask(field)
		*to = from
	}
}

// set reads a list of names; nil is not asked.
func (w *wish) set(field string, from []string, to *[]string) {
	if from == nil {
		return
	}
	if len(from) > maxNames {
		w.refuse(job.CodeInvalid, job.Violation{Field: field, Asked: strconv.Itoa(len(from)) + " names", Allowed: fmt.Sprintf("at most %d", maxNames), Why: "too many"})
		return
	}
	sound := true
	for i, name := range from {
		if why := unsound(field, name, from[:i]); why != "" {
			w.refuse(job.CodeInvalid, job.Violation{Field: field, Asked: short(name), Allowed: "plain names, each once", Why: why})
			sound = false
		}
	}
	if sound {
		w.ask(field)
		*to = slices.Clone(from)
	}
}

// unsound says what is wrong with a name of a list, or nothing.
func unsound(field, name string, before []string) string {
	switch {
	case name == "" || len(name) > maxNameBytes:
		return fmt.Sprintf("a name has 1 to %d bytes", maxNameBytes)
	case !utf8.ValidString(name) || strings.IndexFunc(name, unicode.IsControl) >= 0:
		return "it has control characters or is no UTF-8"
	case slices.Contains(before, name):
		return "it is named twice"
	case name == everything && field != "tools.allow" && field != "tools.deny":
		return "name each one"
	case field == "env_inherit" && (strings.Contains(name, "=") || strings.HasPrefix(strings.ToUpper(name), reservedEnvName)):
		return "it is not the name of a variable that could be inherited"
	}
	return ""
}

func (w *wish) path(field, p string) {
	if !soundPath(p) {
		w.refuse(job.CodeInvalid, job.Violation{Field: field, Asked: short(p), Allowed: "a clean absolute path", Why: "it is not"})
	}
}

// short is a word from a request, bounded and on one line.
func short(word string) string {
	if s := strconv.Quote(word); len(word) > 64 || s != `"`+word+`"` || word != strings.TrimSpace(word) || word == "" {
		return fmt.Sprintf("%.64q", word)
	}
	return word
}
