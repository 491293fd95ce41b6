package client

import (
	"context"
	"net/http"

	"sandboxd/api"
)

// Tree returns a job and all its descendants, with what each may spend and has spent.
func (c *Client) Tree(ctx context.Context, ref string) (*api.Tree, error) {
	path, err := jobPath(ref, api.PathTree)
	if err != nil {
		return nil, err
	}
	var tree api.Tree
	if _, err := c.call(ctx, request{method: http.MethodGet, path: path}, nil, &tree); err != nil {
		return nil, err
	}
	return &tree, nil
}

// Frozen lists what is frozen. It is for admins on the host socket, as are Freeze and Thaw.
func (c *Client) Frozen(ctx context.Context) ([]api.Freeze, error) {
	return c.order(ctx, http.MethodGet, api.PathFreeze, nil)
}

// Freeze lets nothing more start in a scope, until it is thawed, and returns all that is frozen then. It may be
// repeated.
func (c *Client) Freeze(ctx context.Context, r api.FreezeRequest) ([]api.Freeze, error) {
	return c.order(ctx, http.MethodPost, api.PathFreeze, r)
}

// Thaw ends a freeze and returns what stays frozen. It may be repeated.
func (c *Client) Thaw(ctx context.Context, r api.FreezeRequest) ([]api.Freeze, error) {
	return c.order(ctx, http.MethodPost, api.PathThaw, r)
}

func (c *Client) order(ctx context.Context, method, path string, in any) ([]api.Freeze, error) {
	var list api.FreezeList
	err := c.insist(ctx, func() error {
		_, err := c.call(ctx, request{method: method, path: path}, in, &list)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list.Freezes, nil
}
