package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
)

// Bounds on what is read of one answer.
const (
	maxAnswer = 32 << 20 // a JSON answer; a list of ten thousand containers is about half of it
	maxLine   = 1 << 20  // one message of a stream of JSON messages
)

// endpoint is one call this program may make of the engine. The archive (cp), exec, attach, logs and commit calls are
// not here, on purpose: they run or read things inside a container by the engine's root.
type endpoint struct {
	method string
	path   *regexp.Regexp
	bound  func(io.Reader) io.Reader
}

var endpoints = listed(
	"GET", `/version`, whole,
	"HEAD", `/_ping`, whole,
	"GET", `/_ping`, whole,
	"GET", versioned+`/info`, whole,
	"GET", versioned+`/events`, lines,
	"GET", versioned+`/containers/json`, whole,
	"POST", versioned+`/containers/create`, whole,
	"GET", versioned+`/containers/`+idPart+`/json`, whole,
	"POST", versioned+`/containers/`+idPart+`/start`, whole,
	"POST", versioned+`/containers/`+idPart+`/kill`, whole,
	"DELETE", versioned+`/containers/`+idPart, whole,
	"GET", versioned+`/images/get`, unbounded,
	"POST", versioned+`/images/create`, lines,
	"POST", versioned+`/images/load`, lines,
	"GET", versioned+`/images/`+refPart+`/json`, whole,
	"DELETE", versioned+`/images/`+refPart, whole,
)

const (
	versioned = `/v1\.[0-9]{1,3}`
	idPart    = `[a-zA-Z0-9][a-zA-Z0-9_.-]*`
	refPart   = `[a-zA-Z0-9][a-zA-Z0-9_.:/@-]*`
)

func listed(rows ...any) []endpoint {
	var out []endpoint
	for i := 0; i < len(rows); i += 3 {
		out = append(out, endpoint{rows[i].(string), regexp.MustCompile(`^` + rows[i+1].(string) + `$`), rows[i+2].(func(io.Reader) io.Reader)})
	}
	return out
}

func unbounded(r io.Reader) io.Reader { return r }
func whole(r io.Reader) io.Reader     { return &bounded{r: r, left: maxAnswer, max: maxAnswer} }
func lines(r io.Reader) io.Reader     { return &bounded{r: r, left: maxLine, max: maxLine, perLine: true} }

// errNotListed: the code asked for an endpoint that this program must never call.
var errNotListed = errors.New("not one of the engine calls sandboxd makes")

// gate is the only way to the engine: it lets the listed endpoints through, bounds what is read of their answers, and
// notes for the error report how far a request came. The SDK has no address to go around it: see negotiated.
type gate struct {
	host string // for the Host header
	next http.RoundTripper
}

func (g gate) RoundTrip(r *http.Request) (*http.Response, error) {
	e := match(r)
	if e == nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, errNotListed)
	}
	x := exchangeOf(r.Context())
	x.begin(r.Method)
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: x.sent}))
	r.URL = &url.URL{Scheme: "http", Host: g.host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	r.Host = ""
	answer, err := g.next.RoundTrip(r)
	if err != nil {
		x.lost.Store(&err)
		return nil, err
	}
	x.status.Store(int32(answer.StatusCode))
	answer.Body = &watched{Reader: e.bound(answer.Body), Closer: answer.Body, x: x}
	return answer, nil
}

func match(r *http.Request) *endpoint {
	for i := range endpoints {
		if e := &endpoints[i]; e.method == r.Method && e.path.MatchString(r.URL.Path) {
			return e
		}
	}
	return nil
}

// watched is the body of one answer.
type watched struct {
	io.Reader
	io.Closer
	x *exchange
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, errTooLarge) {
		w.x.broken.Store(true)
	}
	return n, err
}

// errTooLarge: the engine's answer is larger than any honest one.
var errTooLarge = errors.New("the engine's answer is too large")

// bounded fails a read beyond max bytes, of all or of one line.
type bounded struct {
	r         io.Reader
	left, max int
	perLine   bool
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		part := len(rest)
		end := -1
		if b.perLine {
			end = bytes.IndexByte(rest, '\n')
		}
		if end >= 0 {
			part = end + 1
		}
		if b.left -= part; b.left < 0 {
			return 0, fmt.Errorf("%w: more than %d bytes", errTooLarge, b.max)
		}
		if end >= 0 {
			b.left = b.max
		}
		rest = rest[part:]
	}
	return n, err
}
