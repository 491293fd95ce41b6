package server

import (
	"net/http"

	"sandboxd/api"
	"sandboxd/internal/job"
)

// maxOrderBody bounds the body of a freeze or thaw.
const maxOrderBody = 4 << 10

// frozen is GET /v1/freeze.
func (s *Server) frozen(x *exchange) error {
	if err := s.mayFreeze(x); err != nil {
		return err
	}
	return s.listFreezes(x)
}

// freeze is POST /v1/freeze.
func (s *Server) freeze(x *exchange) error {
	order, err := s.order(x)
	if err != nil {
		return err
	}
	if err := s.cfg.Freezer.Freeze(x.ctx, x.caller, order.Scope, order.Name); err != nil {
		return err
	}
	return s.listFreezes(x)
}

// thaw is POST /v1/thaw.
func (s *Server) thaw(x *exchange) error {
	order, err := s.order(x)
	if err != nil {
		return err
	}
	if err := s.cfg.Freezer.Thaw(x.ctx, x.caller, order.Scope, order.Name); err != nil {
		return err
	}
	return s.listFreezes(x)
}

func (s *Server) mayFreeze(x *exchange) error {
	switch {
	case x.caller.Job != "":
		return job.Errorf(job.CodeForbidden, "", "freezing is the operator's: a job may not ask for it")
	case !x.caller.Admin:
		return job.Errorf(job.CodeForbidden, "", "freezing is the operator's: only root and members of the admin group may ask for it")
	case s.cfg.Freezer == nil:
		return job.Errorf(job.CodeForbidden, "", "this daemon does not serve freezing")
	}
	return nil
}

func (s *Server) listFreezes(x *exchange) error {
	all, err := s.cfg.Freezer.Frozen(x.ctx)
	if err != nil {
		return err
	}
	if all == nil {
		all = []api.Freeze{}
	}
	writeJSON(x.w, http.StatusOK, api.FreezeList{Freezes: all})
	return nil
}

// order reads what is to be frozen or thawed. A tree is named by any of its jobs.
func (s *Server) order(x *exchange) (o api.FreezeRequest, err error) {
	if err := s.mayFreeze(x); err != nil {
		return o, err
	}
	body, err := x.readAll(s.cfg.BodyTimeout, maxOrderBody)
	if err != nil {
		return o, err
	}
	if err := Decode(body, &o); err != nil {
		return o, err
	}
	switch {
	case o.Scope == api.FreezeAll && o.Name != "":
		return o, job.Errorf(job.CodeInvalid, "name", "scope %s takes no name", api.FreezeAll)
	case o.Scope == api.FreezeAll:
		return o, nil
	case o.Scope != api.FreezeProfile && o.Scope != api.FreezeTree:
		return o, job.Errorf(job.CodeInvalid, "scope", "%.40q is none of %s, %s, %s", o.Scope, api.FreezeAll, api.FreezeProfile, api.FreezeTree)
	case !soundRef(o.Name):
		return o, job.Errorf(job.CodeInvalid, "name", "%.64q is not the name of a profile or a job", o.Name)
	case o.Scope == api.FreezeProfile:
		return o, nil
	}
	return s.treeOrder(x, o)
}

// treeOrder names a tree by its root. One that is forgotten can still be thawed by the whole id of its root.
func (s *Server) treeOrder(x *exchange, o api.FreezeRequest) (api.FreezeRequest, error) {
	j, err := s.resolve(x, "name", o.Name)
	if err == nil {
		o.Name = string(j.Root)
		return o, nil
	}
	if id, idErr := job.ParseID(o.Name); idErr == nil && job.CodeOf(err) == job.CodeNotFound && x.r.URL.Path == api.PathThaw {
		o.Name = string(id)
		return o, nil
	}
	return o, err
}
