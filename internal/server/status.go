package server

import (
	"net/http"

	"sandboxd/api"
)

// profiles is GET /v1/profiles.
func (s *Server) profiles(x *exchange) error {
	out := api.ProfileList{Profiles: s.cfg.Status.Profiles()}
	if out.Profiles == nil {
		out.Profiles = []api.Profile{}
	}
	writeJSON(x.w, http.StatusOK, out)
	return nil
}

// version is GET /v1/version.
func (s *Server) version(x *exchange) error {
	writeJSON(x.w, http.StatusOK, s.cfg.Status.Version())
	return nil
}

// health is GET /v1/health.
func (s *Server) health(x *exchange) error {
	writeJSON(x.w, http.StatusOK, x.showHealth(s.cfg.Status.Health(x.ctx, x.caller)))
	return nil
}
