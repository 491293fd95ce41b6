package server

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// param is one query parameter of a route.
type param struct {
	name string
	many bool // may be given several times
	doc  string
}

// query is the parameters of a request, known to be in the route's list, each given once unless it may be repeated.
type query url.Values

func parseQuery(raw string, known []param) (query, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, job.Wrap(job.CodeInvalid, err, "the query is not well formed: %.80s", err)
	}
	for name, given := range values {
		i := slices.IndexFunc(known, func(p param) bool { return p.name == name })
		if i < 0 {
			return nil, unknownParam(name, known)
		}
		if len(given) > 1 && !known[i].many {
			return nil, job.Errorf(job.CodeInvalid, name, "given %d times; give it once", len(given))
		}
	}
	return query(values), nil
}

func unknownParam(name string, known []param) error {
	var names []string
	for _, p := range known {
		names = append(names, p.name)
	}
	switch near := nearest(name, names); {
	case near != "":
		return job.Errorf(job.CodeInvalid, showKey(name), "unknown parameter; did you mean %s?", near)
	case len(names) == 0:
		return job.Errorf(job.CodeInvalid, showKey(name), "unknown parameter; this path takes none")
	}
	return job.Errorf(job.CodeInvalid, showKey(name), "unknown parameter; this path takes %s", strings.Join(names, ", "))
}

func (q query) get(name string) string   { return url.Values(q).Get(name) }
func (q query) has(name string) bool     { return url.Values(q).Has(name) }
func (q query) all(name string) []string { return q[name] }

func (q query) flag(name string) (bool, error) {
	switch v := q.get(name); {
	case !q.has(name) || v == "false":
		return false, nil
	case v == "true":
		return true, nil
	default:
		return false, job.Errorf(job.CodeInvalid, name, "%.40q is not true or false", v)
	}
}

// number reads a whole number from low to high; absent is the default.
func (q query) number(name string, absent, low, high int64) (int64, error) {
	if !q.has(name) {
		return absent, nil
	}
	n, err := strconv.ParseInt(q.get(name), 10, 64)
	if err != nil || n < low || n > high || strings.HasPrefix(q.get(name), "+") {
		return 0, job.Errorf(job.CodeInvalid, name, "%.40q is not a whole number from %d to %d", q.get(name), low, high)
	}
	return n, nil
}

// span reads a span of time up to high; absent is 0.
func (q query) span(name string, high time.Duration) (time.Duration, error) {
	if !q.has(name) {
		return 0, nil
	}
	d, err := api.ParseDuration(q.get(name))
	if err != nil {
		return 0, job.Errorf(job.CodeInvalid, name, "%s", err)
	}
	if time.Duration(d) > high {
		return 0, job.Errorf(job.CodeInvalid, name, "%s is more than %s; ask again instead", d, api.Duration(high))
	}
	return time.Duration(d), nil
}

// states reads ?state=queued&state=running or ?state=queued,running.
func (q query) states(name string) ([]job.State, error) {
	var out []job.State
	for _, given := range q.all(name) {
		for word := range strings.SplitSeq(given, ",") {
			state := job.State(word)
			if !state.Valid() {
				return nil, job.Errorf(job.CodeInvalid, name, "%.40q is not a state; the states are %s", word, stateNames())
			}
			if !slices.Contains(out, state) {
				out = append(out, state)
			}
		}
	}
	return out, nil
}

func stateNames() string {
	var names []string
	for _, s := range job.States() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// labels reads ?label=key=value, repeated; all must match.
func (q query) labels(name string) (map[string]string, error) {
	if len(q.all(name)) > api.MaxLabels {
		return nil, job.Errorf(job.CodeInvalid, name, "given %d times; a job has at most %d labels", len(q.all(name)), api.MaxLabels)
	}
	var out map[string]string
	for _, given := range q.all(name) {
		key, value, ok := strings.Cut(given, "=")
		if !ok || key == "" {
			return nil, job.Errorf(job.CodeInvalid, name, "%.80q is not key=value", given)
		}
		if other, twice := out[key]; twice && other != value {
			return nil, job.Errorf(job.CodeInvalid, name, "asks for %.63q with two values; no job has both", key)
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[key] = value
	}
	return out, nil
}
