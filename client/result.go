package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"sandboxd/api"
)

// waitStep is how long one exchange of WaitResult waits at the daemon, unless a test says otherwise.
const waitStep = 30 * time.Second

// Result waits up to wait for a job to be done. Exactly one of the three is set: the result of a job that is done,
// the job while it is not, or an error.
func (c *Client) Result(ctx context.Context, ref string, wait time.Duration) (*api.Result, *api.Job, error) {
	path, err := jobPath(ref, api.PathResult)
	if err != nil {
		return nil, nil, err
	}
	r := request{method: http.MethodGet, path: path}
	if wait > 0 {
		r.query = url.Values{"wait": {wait.String()}}
	}
	var body json.RawMessage
	status, err := c.callWithin(ctx, wait+c.callTimeout, r, nil, &body)
	if err != nil {
		return nil, nil, err
	}
	if status == http.StatusAccepted {
		job := &api.Job{}
		if err := json.Unmarshal(body, job); err != nil {
			return nil, nil, &ProtocolError{Call: r.String(), Detail: "not a job", Err: err}
		}
		return nil, job, nil
	}
	result := &api.Result{}
	if err := json.Unmarshal(body, result); err != nil {
		return nil, nil, &ProtocolError{Call: r.String(), Detail: "not a result", Err: err}
	}
	if result.Schema != api.ResultSchema {
		return nil, nil, &ProtocolError{Call: r.String(), Detail: "its schema is not " + api.ResultSchema}
	}
	return result, nil, nil
}

// WaitResult waits until a job is done, however long that takes, and returns its result. It survives restarts of the
// daemon that last less than Options.RetryFor. A daemon that is away from the start is reported at once.
func (c *Client) WaitResult(ctx context.Context, ref string) (*api.Result, error) {
	p := patience{limit: c.retryFor}
	step := c.waitStep
	for {
		asked := time.Now()
		result, job, err := c.Result(ctx, ref, step)
		switch {
		case result != nil:
			return result, nil
		case job != nil && step == 0: // the trouble is over: perhaps it was this process that stood still
			p.calm()
			step = c.waitStep
			continue
		case job != nil:
			ref = job.ID // a name may be given to another job while this one is waited for
			if time.Since(asked) > steady {
				p.calm()
				continue
			}
		case !passing(err) || !c.met():
			return nil, err
		default:
			if err := p.worn(ctx, err); err != nil {
				return nil, err
			}
			step = 0
			continue
		}
		// A daemon that answers "not yet" at once is asked again in a measured way.
		if err := sleep(ctx, firstWait); err != nil {
			return nil, err
		}
	}
}
