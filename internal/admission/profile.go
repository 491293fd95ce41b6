package admission

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

const defaultProfile = "default"

// checkProfile finds the profile: for a root the one it names or the default; for a child one of its parent's roster,
// which its parent's own must be in as well to be inherited.
func checkProfile(_ context.Context, c *Checker, a *attempt) error {
	a.above.Limits = c.rules.Limits
	if a.parent == nil {
		name := a.req.Profile
		if name == "" {
			name = defaultProfile
		}
		return a.setProfile(c, name)
	}
	parent := &a.parent.Envelope
	a.above.Parent, a.above.ParentID, a.above.LeftMS = parent, a.parent.Job.ID, a.parent.LeftMS
	if err := a.checkRoster(); err != nil {
		return err
	}
	if parent.Depth >= parent.MaxDepth {
		return envelope.Denial([]envelope.Violation{{Code: job.CodeDepthLimit, Violation: job.Violation{
			Field: "depth", Asked: strconv.FormatInt(parent.Depth+1, 10), Allowed: "at most " + strconv.FormatInt(parent.MaxDepth, 10),
			Why: "its tree may be no deeper",
		}}})
	}
	if a.req.Profile == "" {
		return nil // Narrow keeps the parent's
	}
	return a.setProfile(c, a.req.Profile)
}

func (a *attempt) setProfile(c *Checker, name string) error {
	at := slices.IndexFunc(c.rules.Profiles, func(p envelope.Profile) bool { return p.Name == name })
	if at >= 0 {
		a.above.Profile = &c.rules.Profiles[at]
		return nil
	}
	var known []string
	for _, p := range c.rules.Profiles {
		known = append(known, p.Name)
	}
	sort.Strings(known)
	return job.Errorf(job.CodeNotInRoster, "profile", "there is no profile %.64q; there are: %s", name, strings.Join(known, ", ")).WithHint("see 'sbx profiles'")
}

// checkRoster holds the profile of a child to what its parent may delegate to.
func (a *attempt) checkRoster() error {
	roster := a.parent.Envelope.Delegates
	name, asked := a.req.Profile, fmt.Sprintf("%.64q", a.req.Profile)
	if name == "" {
		name, asked = a.parent.Envelope.Profile, "none"
	}
	refuse := func(why, hint string) error {
		v := job.Violation{Field: "profile", Asked: asked, Allowed: showRoster(roster), Why: why}
		return envelope.Denial([]envelope.Violation{{Violation: v, Code: job.CodeNotInRoster}}).WithHint("%s", hint)
	}
	switch {
	case len(roster) == 0:
		return refuse("a job of profile "+a.parent.Envelope.Profile+" may not delegate",
			"do the work in this job, or let the operator name delegates in its profile")
	case slices.Contains(roster, name):
		return nil
	case a.req.Profile == "":
		return refuse("its parent's own profile, "+name+", is not among the delegates of its parent", "name one of them")
	}
	return refuse("it is not among the delegates of its parent", "name one of them; 'sbx profiles' shows what each allows")
}

func showRoster(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	const most = 32
	shown := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		shown += " and " + strconv.Itoa(more) + " more"
	}
	return shown
}
