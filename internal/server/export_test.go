package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// RouteDoc is what the table says of one route, for the test of openapi.yaml.
type RouteDoc struct {
	Method, Path, Doc string
	Params            map[string]string // query parameters and their docs
	Many              map[string]bool
	In                any
	HasBody           bool
	BodyOptional      bool
	Replies           map[int]map[string]any // status, media type, body
	Errors            []int
}

// RouteDocs exports the table to tests.
func RouteDocs() []RouteDoc {
	var out []RouteDoc
	for _, r := range table {
		d := RouteDoc{
			Method: strings.ToLower(r.method), Path: r.path, Doc: r.doc, In: r.in,
			Params: map[string]string{}, Many: map[string]bool{}, Replies: map[int]map[string]any{},
			HasBody: r.body != noBody, BodyOptional: r.body == optionalJSONBody,
			Errors: slices.Concat(r.errors, everyRoute),
		}
		for _, p := range r.params {
			d.Params[p.name], d.Many[p.name] = p.doc, p.many
		}
		for _, rep := range r.replies {
			if d.Replies[rep.status] == nil {
				d.Replies[rep.status] = map[string]any{}
			}
			if rep.status != http.StatusNoContent {
				d.Replies[rep.status][rep.media] = rep.body
			}
		}
		out = append(out, d)
	}
	return out
}

// OpenConns is the number of connections that count against the bounds.
func (s *Server) OpenConns() int { return s.gate.count() }

// Watched is the number of jobs whose lease is watched.
func (s *Server) Watched() int { return s.leases.Watched() }

// Nearest exports the suggestion to tests.
var Nearest = nearest

// Bodies exports the room for request bodies to tests.
type Bodies struct{ b *bodies }

// NewBodies makes room.
func NewBodies() Bodies { return Bodies{newBodies(bodyBytes)} }

// Take waits for room.
func (b Bodies) Take(ctx context.Context, principal string, n int64) (func(), error) {
	return b.b.take(ctx, principal, n)
}

// Principals is how many principals have requests.
func (b Bodies) Principals() int { return len(b.b.one) }

// BodyPatience is how long a request waits for room.
const BodyPatience = bodyPatience
