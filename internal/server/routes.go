package server

import (
	"net/http"
	"slices"
	"strings"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// route is one line of the table. A test holds api/openapi.yaml to it, in both directions.
type route struct {
	method, path string
	doc          string
	params       []param
	body         bodyKind
	in           any // what a JSON body is decoded into
	replies      []reply
	errors       []int // statuses of problems, beside those every route may answer with
	lasting      bool  // goes on or waits, and ends cleanly when the daemon stops
	handle       func(*Server, *exchange) error
}

// bodyKind says what a route does with a body.
type bodyKind int

const (
	noBody bodyKind = iota
	jsonBody
	optionalJSONBody
	streamBody
)

// reply is one way a route answers; body is nil for bytes.
type reply struct {
	status int
	media  string
	body   any
}

// everyRoute are the statuses of problems that any route may answer with.
var everyRoute = []int{
	http.StatusBadRequest, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// oneJob are those of a route that names a job, beside everyRoute.
var oneJob = []int{http.StatusNotFound}

func routes() []route {
	return slices.Concat(jobRoutes(), lastingRoutes(), freezeRoutes(), []route{
		{
			method: http.MethodGet, path: api.PathProfiles, handle: (*Server).profiles,
			doc:     "the profiles a job may name, with their values",
			replies: []reply{{http.StatusOK, api.JSONType, api.ProfileList{}}},
		},
		{
			method: http.MethodGet, path: api.PathVersion, handle: (*Server).version,
			doc:     "product, version and instance; tells this socket from a foreign one",
			replies: []reply{{http.StatusOK, api.JSONType, api.VersionInfo{}}},
		},
		{
			method: http.MethodGet, path: api.PathHealth, handle: (*Server).health,
			doc:     "whether the daemon and its engine work",
			replies: []reply{{http.StatusOK, api.JSONType, api.Health{}}},
		},
	})
}

func jobRoutes() []route {
	return []route{
		{
			method: http.MethodPost, path: api.PathJobs, handle: (*Server).submit,
			doc:  "submit a job",
			body: jsonBody, in: api.JobRequest{},
			replies: []reply{{http.StatusCreated, api.JSONType, api.Job{}}, {http.StatusOK, api.JSONType, api.Job{}}},
			errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge,
				http.StatusBadGateway, http.StatusInsufficientStorage},
		},
		{
			method: http.MethodGet, path: api.PathJobs, handle: (*Server).list,
			doc: "list your jobs, newest first",
			params: []param{
				{name: "state", many: true, doc: "only jobs in this state; several, or separated by commas: in any of them"},
				{name: "label", many: true, doc: "only jobs with this key=value; several: with all of them"},
				{name: "name", doc: "only jobs of exactly this name"},
				{name: "root", doc: "only jobs of the tree of this job"},
				{name: "parent", doc: "only children of this job"},
				{name: "limit", doc: "at most so many, 1 to 500; 100 where absent; a page of 4 MiB ends earlier"},
				{name: "before", doc: "only jobs older than the one with this whole id; take next of the last page"},
			},
			replies: []reply{{http.StatusOK, api.JSONType, api.JobList{}}},
			errors:  oneJob,
		},
		{
			method: http.MethodGet, path: api.PathJob, handle: (*Server).get,
			doc:     "one job with its effective envelope, slot and place in the queue",
			replies: []reply{{http.StatusOK, api.JSONType, api.Job{}}},
			errors:  oneJob,
		},
		{
			method: http.MethodGet, path: api.PathTree, handle: (*Server).tree,
			doc:     "a job and all its descendants, with what each may spend and has spent",
			replies: []reply{{http.StatusOK, api.JSONType, api.Tree{}}},
			errors:  oneJob,
		},
		{
			method: http.MethodPost, path: api.PathCancel, handle: (*Server).cancel,
			doc:  "cancel a job; without a body, with grace; a job that is done stays as it is",
			body: optionalJSONBody, in: api.CancelRequest{},
			replies: []reply{{http.StatusOK, api.JSONType, api.Job{}}},
			errors: []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge,
				http.StatusBadGateway},
		},
	}
}

func lastingRoutes() []route {
	return []route{
		{
			method: http.MethodGet, path: api.PathResult, handle: (*Server).result, lasting: true,
			doc:     "the result of a job, or the job where it is not done in time",
			params:  []param{{name: "wait", doc: "wait so long for the job to be done, such as 30s; at most 10m; 0 where absent"}},
			replies: []reply{{http.StatusOK, api.JSONType, api.Result{}}, {http.StatusAccepted, api.JSONType, api.Job{}}},
			errors:  []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
		},
		{
			method: http.MethodGet, path: api.PathStream, handle: (*Server).stream, lasting: true,
			doc: "the output of a job, as bare bytes or, where Accept says so, as records",
			params: []param{
				{name: "from", doc: "begin at this offset in bytes of both streams together; 0 where absent"},
				{name: "follow", doc: "true: wait for more until the stream is complete; a queued job is waited for"},
				{name: "stream", doc: "stdout, stderr or both; both where absent"},
			},
			replies: []reply{{http.StatusOK, api.BytesType, nil}, {http.StatusOK, api.StreamType, nil}},
			errors:  oneJob,
		},
		{
			method: http.MethodPut, path: api.PathStdin, handle: (*Server).stdin, lasting: true,
			doc:     "send standard input until its end to a job submitted with stdin_stream; waits where the job does not read",
			body:    streamBody,
			replies: []reply{{status: http.StatusNoContent}},
			errors:  []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
		},
		{
			method: http.MethodGet, path: api.PathLease, handle: (*Server).lease, lasting: true,
			doc: "hold the lease of a job: a newline a beat until the job is done",
			params: []param{
				{name: "wait", doc: "true: whoever holds it does nothing else until the job is done, so that a job that does may lend its place"},
			},
			replies: []reply{{http.StatusOK, api.LeaseType, nil}},
			errors:  []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
		},
		{
			method: http.MethodGet, path: api.PathEvents, handle: (*Server).events, lasting: true,
			doc: "what happened to your jobs, one event a line",
			params: []param{
				{name: "after", doc: "only events with a higher number; 0 where absent"},
				{name: "follow", doc: "true: wait for more"},
			},
			replies: []reply{{http.StatusOK, api.EventsType, api.Event{}}},
		},
	}
}

func freezeRoutes() []route {
	order := []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge}
	list := []reply{{http.StatusOK, api.JSONType, api.FreezeList{}}}
	return []route{
		{
			method: http.MethodGet, path: api.PathFreeze, handle: (*Server).frozen,
			doc:     "what is frozen; for admins on the host socket",
			replies: list, errors: []int{http.StatusForbidden},
		},
		{
			method: http.MethodPost, path: api.PathFreeze, handle: (*Server).freeze,
			doc:  "let nothing more start in a scope, until it is thawed; for admins on the host socket",
			body: jsonBody, in: api.FreezeRequest{},
			replies: list, errors: order,
		},
		{
			method: http.MethodPost, path: api.PathThaw, handle: (*Server).thaw,
			doc:  "end a freeze; for admins on the host socket",
			body: jsonBody, in: api.FreezeRequest{},
			replies: list, errors: order,
		},
	}
}

// find returns the routes of a path and the ref in it. The path is the one on the wire: it is cut at its slashes
// before anything is decoded, so that no encoding can make two parts of one.
func find(table []route, escaped string) (found []route, ref string) {
	parts := strings.Split(escaped, "/")
	for _, r := range table {
		want := strings.Split(r.path, "/")
		if len(want) != len(parts) {
			continue
		}
		match, part := true, ""
		for i, w := range want {
			if w == "{ref}" && parts[i] != "" {
				part = parts[i]
				continue
			}
			match = match && w == parts[i]
		}
		if match {
			found, ref = append(found, r), part
		}
	}
	return found, ref
}

func allowed(found []route) string {
	var methods []string
	for _, r := range found {
		methods = append(methods, r.method)
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}

// errNoPath answers a path outside the table.
var errNoPath = job.Errorf(job.CodeNotFound, "", "no such path").WithHint("the paths are in api/openapi.yaml; all begin with /v1/")
