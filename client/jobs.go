package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"sandboxd/api"
)

// StateDone is the state of a job that has ended and carries an outcome.
const StateDone = "done"

// Submit asks for one job and returns it as admitted, which is not yet started. A refusal is an *Error; nothing ran.
//
// Submit may be repeated safely: an empty idempotency key is replaced by a random one, and where the connection is
// cut before the answer the same request is sent again, for at most Options.RetryFor.
func (c *Client) Submit(ctx context.Context, req api.JobRequest) (*api.Job, error) {
	if req.IdempotencyKey == "" {
		req.IdempotencyKey = rand.Text()
	}
	var job api.Job
	err := c.insist(ctx, func() error {
		_, err := c.call(ctx, request{method: http.MethodPost, path: api.PathJobs}, req, &job)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &job, nil
}

// Job returns one job. ref is an id, an unambiguous beginning of one (4 hex digits and more), or a name.
func (c *Client) Job(ctx context.Context, ref string) (*api.Job, error) {
	path, err := jobPath(ref, api.PathJob)
	if err != nil {
		return nil, err
	}
	var job api.Job
	if _, err := c.call(ctx, request{method: http.MethodGet, path: path}, nil, &job); err != nil {
		return nil, err
	}
	return &job, nil
}

// JobFilter narrows Jobs. Zero fields do not filter.
type JobFilter struct {
	States []string
	Labels map[string]string // all must match
	Name   string
	Root   string // whole id
	Parent string // whole id
	Limit  int    // jobs in one page, at most api.MaxListLimit; 0 is api.DefaultLimit
	Before string // JobList.Next of the page before
}

// Jobs lists jobs, newest first, one page at a time.
func (c *Client) Jobs(ctx context.Context, f JobFilter) (*api.JobList, error) {
	var l api.JobList
	if _, err := c.call(ctx, request{method: http.MethodGet, path: api.PathJobs, query: f.query()}, nil, &l); err != nil {
		return nil, err
	}
	return &l, nil
}

func (f JobFilter) query() url.Values {
	q := url.Values{}
	for _, s := range f.States {
		q.Add("state", s)
	}
	for k, v := range f.Labels {
		q.Add("label", k+"="+v)
	}
	for k, v := range map[string]string{"name": f.Name, "root": f.Root, "parent": f.Parent, "before": f.Before} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// Cancel asks that a job and all its descendants end: with grace (TERM, then the finishing window), or with kill at
// once. It returns when the wish is stored, not when the job has ended, and may be repeated.
func (c *Client) Cancel(ctx context.Context, ref string, kill bool) (*api.Job, error) {
	path, err := jobPath(ref, api.PathCancel)
	if err != nil {
		return nil, err
	}
	var job api.Job
	err = c.insist(ctx, func() error {
		_, err := c.call(ctx, request{method: http.MethodPost, path: path}, api.CancelRequest{Kill: kill}, &job)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &job, nil
}

// jobPath puts a reference into one of the api's path patterns. What cannot be an id or a name is refused here, so that it can never
// become another path.
func jobPath(ref, pattern string) (string, error) {
	bad := func(c rune) bool { return !isAlnum(c) && !strings.ContainsRune("-_.", c) }
	if ref == "" || len(ref) > api.MaxNameLen || !isAlnum(rune(ref[0])) || strings.ContainsFunc(ref, bad) {
		return "", &Error{api.Problem{
			Title: "Not Found", Status: http.StatusNotFound, Code: CodeNotFound, Field: "job", ExitCode: 125,
			Detail: fmt.Sprintf("%.64q is neither a job's id (or its first 4 hex digits and more) nor a job's name", ref),
			Hint:   "see 'sbx ps -a'",
		}}
	}
	return strings.Replace(pattern, "{ref}", ref, 1), nil
}

func isAlnum(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
