package budget

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"sandboxd/internal/job"
)

// Parse reads one amount: decimal digits of a whole number from 1 to 2^63 − 1. A sign, a fraction, an exponent, NaN,
// infinity and what does not fit are refused, naming the dimension.
func Parse(d Dim, text string) (int64, *job.Error) {
	why := ""
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case d.Kind() == 0:
		return 0, unknown(d)
	case strings.HasPrefix(text, "-"):
		why = "an amount is never negative"
	case text == "" || strings.Trim(text, "0123456789") != "":
		why = "it is not a whole number"
	case err != nil:
		why = "it does not fit 64 bits"
	case n == 0:
		why = "0 never means unlimited; leave it out for no limit of its own"
	default:
		return n, nil
	}
	e := job.Errorf(job.CodeInvalid, d.Field(), "%.40q is not an amount: %s", text, why)
	e.Violations = []job.Violation{{Field: d.Field(), Asked: fmt.Sprintf("%.40s", text), Allowed: allowedSpan, Why: why}}
	return 0, e
}

var allowedSpan = "1 to " + strconv.FormatInt(math.MaxInt64, 10)

func unknown(d Dim) *job.Error {
	e := job.Errorf(job.CodeInvalid, fmt.Sprintf("budget.%.64q", string(d)), "there is no such dimension; there are: %s", list(Dims()))
	e.Violations = []job.Violation{{Field: e.Field, Allowed: list(Dims()), Why: "there is no such dimension"}}
	return e
}

func list(dims []Dim) string {
	words := make([]string, len(dims))
	for i, d := range dims {
		words[i] = string(d)
	}
	return strings.Join(words, ", ")
}

// ParseAll reads amounts by the names of their dimensions and reports every fault in one refusal. The result is never nil.
func ParseAll(words map[string]string) (Limits, error) {
	out := Limits{}
	var bad *job.Error
	for _, name := range slices.Sorted(maps.Keys(words)) {
		n, err := Parse(Dim(name), words[name])
		switch {
		case err != nil && bad == nil:
			bad = err
		case err != nil:
			bad.Violations = append(bad.Violations, err.Violations...)
		default:
			out[Dim(name)] = n
		}
	}
	if bad != nil {
		return nil, bad
	}
	return out, nil
}

// Check lists what is wrong with limits that were not parsed here: unknown dimensions, amounts below 1.
func (l Limits) Check() []job.Violation {
	var bad []job.Violation
	for _, d := range names(l) {
		if _, err := Parse(d, strconv.FormatInt(l[d], 10)); err != nil {
			bad = append(bad, err.Violations...)
		}
	}
	return bad
}

// UnmarshalJSON reads an object of whole numbers by the names of the dimensions. null is nil Limits. What Parse refuses
// is an error that names the dimension, and so is a name that stands twice.
func (l *Limits) UnmarshalJSON(b []byte) error {
	if string(bytes.TrimSpace(b)) == "null" {
		*l = nil
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return job.Errorf(job.CodeInvalid, "budget", "is not an object of amounts")
	}
	words := map[string]string{}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return job.Errorf(job.CodeInvalid, "budget", "is not an object of amounts")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return job.Wrap(job.CodeInvalid, err, "budget.%.64q cannot be read", name)
		}
		if _, twice := words[name]; twice {
			return job.Errorf(job.CodeInvalid, fmt.Sprintf("budget.%.64q", name), "given twice")
		}
		words[name] = string(value)
	}
	out, err := ParseAll(words)
	if err != nil {
		return err
	}
	*l = out
	return nil
}
