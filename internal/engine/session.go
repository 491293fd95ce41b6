package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"time"

	"github.com/docker/docker/api"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

// minAPI is Docker 20.10, the oldest engine all our settings exist on.
const minAPI = "1.41"

// session is a client of the version both sides speak.
type session struct {
	*client.Client
	api string
}

// connectLater makes the HTTP client, with the gate before a transport that the SDK has set up for the address.
func (d *Docker) connectLater() error {
	d.pool = &http.Transport{MaxIdleConns: 32, MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second}
	u, err := client.ParseHostURL(d.opt.Host)
	if err != nil {
		return errors.New("want unix:///path or tcp://host:port")
	}
	host := u.Host
	switch {
	case u.Scheme == "unix":
		host = client.DummyHost
	case u.Scheme == "tcp" && (os.Getenv(client.EnvTLSVerify) != "" || os.Getenv(client.EnvOverrideCertPath) != ""):
		return errors.New("TLS is asked for by the environment and not supported; use the engine's unix socket")
	case u.Scheme != "tcp":
		return fmt.Errorf("scheme %q: want unix:///path or tcp://host:port; the engine must be this host's own", u.Scheme)
	}
	if u.Path != "" {
		return errors.New("want an address without a path")
	}
	d.http = &http.Client{Transport: gate{host, d.pool}, CheckRedirect: client.CheckRedirect}
	_, err = client.NewClientWithOpts(client.WithHTTPClient(&http.Client{Transport: d.pool}), client.WithHost(d.opt.Host))
	d.pool.Proxy = nil // the engine is this host's own
	return err
}

// negotiated returns the present session or makes one. Callers may negotiate side by side: the result is the same.
func (d *Docker) negotiated(ctx context.Context) (*session, error) {
	if s := d.session.Load(); s != nil {
		return s, nil
	}
	version, err := d.negotiate(ctx)
	if err != nil {
		return nil, err
	}
	// For attach and exec the SDK dials its address itself, past our transport. So it gets an address that cannot be
	// dialled (there is no network called "gated"); the gate puts the true one in.
	sdk, err := client.NewClientWithOpts(client.WithHTTPClient(&http.Client{Transport: &http.Transport{}}), client.WithHost("gated://engine"),
		client.WithHTTPClient(d.http), client.WithScheme("http"), client.WithVersion(version))
	if err != nil {
		return nil, err
	}
	s := &session{sdk, version}
	d.session.Store(s)
	return s, nil
}

var versionForm = regexp.MustCompile(`^1\.[0-9]{1,3}$`)

// negotiate picks the newest API version both sides speak. The SDK's own negotiation goes on with its newest version
// where the question fails, and does not see that an engine has become too new; so we ask ourselves.
func (d *Docker) negotiate(ctx context.Context) (string, error) {
	its, err := d.askVersion(ctx)
	if err != nil {
		return "", err
	}
	refuse := func(format string, args ...any) error {
		return &noCommonVersion{"the engine at " + d.opt.Host + " " + fmt.Sprintf(format, args...)}
	}
	switch {
	case !versionForm.MatchString(its.APIVersion):
		return "", refuse("names no API version (%q); is it Docker?", oneLine(its.APIVersion))
	case versions.LessThan(its.APIVersion, minAPI):
		return "", refuse("speaks API %s, sandboxd needs %s (Docker 20.10) or newer: update the engine", its.APIVersion, minAPI)
	case versionForm.MatchString(its.MinAPIVersion) && versions.GreaterThan(its.MinAPIVersion, api.DefaultVersion):
		return "", refuse("wants API %s or newer, sandboxd speaks up to %s: update sandboxd", its.MinAPIVersion, api.DefaultVersion)
	case versions.LessThan(its.APIVersion, api.DefaultVersion):
		return its.APIVersion, nil
	}
	return api.DefaultVersion, nil
}

// noCommonVersion: an engine answers, and we cannot talk to it.
type noCommonVersion struct{ text string }

func (n *noCommonVersion) Error() string { return n.text }

// spoken are the API versions an engine speaks.
type spoken struct {
	APIVersion    string `json:"ApiVersion"`
	MinAPIVersion string
}

func (d *Docker) askVersion(ctx context.Context) (spoken, error) {
	var its spoken
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/version", nil)
	if err != nil {
		return its, err
	}
	answer, err := d.http.Do(r)
	if err != nil {
		return its, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return its, fmt.Errorf("the engine at %s answers %s to GET /version", d.opt.Host, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&its); err != nil {
		return its, fmt.Errorf("the engine at %s: its version cannot be read: %w", d.opt.Host, err)
	}
	return its, nil
}
