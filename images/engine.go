package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	askTimeout  = 30 * time.Second
	loadTimeout = 5 * time.Minute
	maxReply    = 4 << 20 // bytes of a reply that are read
)

// engine is the little of the container engine's API that loading an image takes.
type engine struct {
	http http.Client
	base string
}

// loaded is an image as the engine has it; without an ID it has none.
type loaded struct {
	ID     string
	Size   int64
	Recipe string // the value of its recipe label
}

// newEngine reads a DOCKER_HOST: unix:///path, tcp://host:port, or empty for the usual socket.
func newEngine(dockerHost string) (*engine, error) {
	if dockerHost == "" {
		dockerHost = "unix:///var/run/docker.sock"
	}
	scheme, address, _ := strings.Cut(dockerHost, "://")
	switch {
	case scheme == "unix" && address != "":
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", address)
		}
		return &engine{base: "http://engine", http: http.Client{Transport: &http.Transport{DialContext: dial}}}, nil
	case scheme == "tcp" && address != "" && os.Getenv("DOCKER_TLS_VERIFY") == "":
		return &engine{base: "http://" + strings.TrimSuffix(address, "/")}, nil
	}
	return nil, fmt.Errorf("DOCKER_HOST=%s: images are loaded over unix:///path or tcp://host:port without TLS only", dockerHost)
}

// checkArch refuses an engine whose machine could not run what this one builds.
func (e *engine) checkArch(ctx context.Context, arch string) error {
	var version struct{ Arch string }
	if _, err := e.ask(ctx, "/version", &version); err != nil {
		return err
	}
	if version.Arch != arch {
		return fmt.Errorf("the engine runs on %s, this machine is %s: build the images on the engine's machine", version.Arch, arch)
	}
	return nil
}

// find looks an image up by its tag. An image that is not there is no error.
func (e *engine) find(ctx context.Context, tag string) (loaded, error) {
	var reply struct {
		ID     string `json:"Id"`
		Size   int64
		Config struct{ Labels map[string]string }
	}
	found, err := e.ask(ctx, "/images/"+tag+"/json", &reply)
	if err != nil || !found {
		return loaded{}, err
	}
	return loaded{ID: reply.ID, Size: reply.Size, Recipe: reply.Config.Labels[recipeLabel]}, nil
}

// ask reads one JSON reply; found is false where the engine has no such object.
func (e *engine) ask(ctx context.Context, path string, reply any) (found bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errors.New("the engine gave no answer"))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base+path, nil)
	if err != nil {
		return false, err
	}
	res, err := e.http.Do(req)
	if err != nil {
		return false, fmt.Errorf("ask the engine (is it running? make engine): %w", err)
	}
	defer res.Body.Close()
	body := io.LimitReader(res.Body, maxReply)
	switch res.StatusCode {
	case http.StatusOK:
		return true, json.NewDecoder(body).Decode(reply)
	case http.StatusNotFound:
		return false, nil
	}
	text, _ := io.ReadAll(body)
	return false, fmt.Errorf("engine %s: %s: %s", path, res.Status, tail(text))
}

// load streams an archive into the engine. The engine says 200 before it has read it, so its messages decide.
func (e *engine) load(ctx context.Context, archive func(io.Writer) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, loadTimeout, errors.New("the engine did not take the image within 5 minutes"))
	defer cancel()
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := archive(w)
		w.CloseWithError(err)
		written <- err
	}()
	err := e.send(ctx, r)
	r.CloseWithError(errors.New("the engine stopped reading")) // ends the writer in any case
	if writeErr := <-written; err == nil && writeErr != nil {
		err = fmt.Errorf("write the archive: %w", writeErr)
	}
	return err
}

func (e *engine) send(ctx context.Context, archive io.Reader) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+"/images/load?quiet=1", archive)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-tar")
	res, err := e.http.Do(req)
	if err != nil {
		return fmt.Errorf("load into the engine: %w", err)
	}
	defer res.Body.Close()
	body := io.LimitReader(res.Body, maxReply)
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(body)
		return fmt.Errorf("load into the engine: %s: %s", res.Status, tail(text))
	}
	for messages := json.NewDecoder(body); ; {
		var message struct{ Error string }
		err := messages.Decode(&message)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("load into the engine: %w", err)
		}
		if message.Error != "" {
			return fmt.Errorf("load into the engine: %s", message.Error)
		}
	}
}
