package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// problemOf turns an error into its reply. Causes stay in the log: a fault of ours shows the number of the request
// there and nothing else.
func problemOf(err error, request uint64) api.Problem {
	var e *job.Error
	if !errors.As(err, &e) || e.Code == job.CodeInternal || e.Code.HTTPStatus() == http.StatusInternalServerError {
		e = job.Errorf(job.CodeInternal, "", "a fault of the daemon").
			WithHint("its log says more at %s=%d", keyRequest, request)
	}
	p := api.Problem{
		Title:    http.StatusText(e.Code.HTTPStatus()),
		Status:   e.Code.HTTPStatus(),
		Code:     string(e.Code),
		Field:    e.Field,
		Detail:   e.Message,
		Hint:     e.Hint,
		ExitCode: e.Code.ExitCode(),
	}
	for _, v := range e.Violations {
		p.Violations = append(p.Violations, api.Violation{Field: v.Field, Asked: v.Asked, Allowed: v.Allowed, Why: v.Why})
	}
	return p
}

// methodProblem is answered with 405, which belongs to HTTP and has no code of ours.
func methodProblem(method, allow string) api.Problem {
	return api.Problem{
		Title:    http.StatusText(http.StatusMethodNotAllowed),
		Status:   http.StatusMethodNotAllowed,
		Code:     string(job.CodeInvalid),
		Detail:   "this path does not take " + showKey(method),
		Hint:     "it takes " + allow,
		ExitCode: job.CodeInvalid.ExitCode(),
	}
}

func writeProblem(w http.ResponseWriter, p api.Problem) {
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	writeBody(w, p.Status, api.ProblemType, p)
}

func writeJSON(w http.ResponseWriter, status int, body any) { writeBody(w, status, api.JSONType, body) }

// writeBody sends one JSON value, as a line, with its length.
func writeBody(w http.ResponseWriter, status int, mediaType string, body any) {
	b, err := marshal(body)
	if err != nil {
		panic(err) // a reply of ours that has no JSON form is a fault, and dispatch answers for it
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // a client that has gone is told nothing
}

// marshal writes JSON for people too: < and & stand as they are. It ends with a newline.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
