package engine

import (
	"context"
	"net/http"

	"github.com/docker/docker/client"
)

// SDK is the client below d.
func SDK(ctx context.Context, d *Docker) (*client.Client, error) {
	s, err := d.negotiated(ctx)
	if err != nil {
		return nil, err
	}
	return s.Client, nil
}

// HTTP is the web client below d.
func HTTP(d *Docker) *http.Client { return d.http }

// Settings tells which of the SDK's fields an inspection reads; the rest must be zero.
func Settings() (config, host, resources map[string]bool) {
	return readOfConfig, readOfHost, readOfResources
}
