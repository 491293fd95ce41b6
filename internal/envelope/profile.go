package envelope

import (
	"maps"

	"sandboxd/internal/job"
)

// Profile is an operator's named envelope: what a job gets where it asks nothing, and the most it may ask.
type Profile struct {
	Name        string
	Description string
	Default     Posture
	Limit       Posture
	Origins     map[string]Origin // of the defaults
	Allows      Bounds            // the rest: default and limit in one, but for the workspace
	// WorkspaceMode is what a workspace without a mode gets; Allows.Workspace has the most.
	WorkspaceMode job.WorkspaceMode
}

// anyPath stands for every host path: that a caller may read one is checked where it is opened.
const anyPath = "/"

// standard is the profile as the envelope of a job that asks nothing; of paths it has no opinion.
func (p Profile) standard() Envelope {
	e := Envelope{Profile: p.Name, Posture: p.Default, Bounds: p.Allows}
	e.Workspace = Workspace{Path: anyPath, Mode: modes.least(p.WorkspaceMode), Git: p.Allows.Workspace.Git}
	e.Mounts = []job.Mount{{Source: anyPath}}
	return e
}

// Start is the envelope of a root that asks nothing.
func (p Profile) Start() Envelope {
	e := p.standard()
	e.Workspace.Path, e.Mounts = "", nil
	e.Origins = map[string]Origin{}
	maps.Copy(e.Origins, p.Origins)
	return e
}

// Ceiling is the widest envelope the profile allows. What no request can name is in it as in the default.
func (p Profile) Ceiling() Envelope {
	e := p.standard()
	e.Posture = p.Limit
	e.Posture.ImageID, e.Posture.HomeExec, e.Posture.Shm = p.Default.ImageID, p.Default.HomeExec, p.Default.Shm
	e.Workspace.Mode, e.Workspace.Live = p.Allows.Workspace.Mode, p.Allows.Workspace.Live
	return e
}

var noWorkspace = Workspace{Mode: job.WorkspaceRO, Git: GitRO}
