package envelope

import (
	"slices"
	"strconv"

	"sandboxd/internal/job"
)

// start makes the envelope of a request that asks nothing, and the ceilings. It reports whether there is one to go on with.
func (n *narrowing) start() bool {
	a := n.above
	if a.Parent == nil && a.Profile == nil {
		n.refuse(job.CodeNotInRoster, job.Violation{Field: "profile", Asked: "none", Allowed: "one of the config", Why: "a root has a profile"})
		return false
	}
	if a.Parent == nil {
		n.e = a.Profile.Start()
		n.top(*a.Profile, "more than the limit")
	} else if !n.startChild() {
		return false
	}
	if a.Limits != nil {
		limits := a.Limits.Ceiling()
		n.tightenAll(limits, Clamped)
		n.top(*a.Limits, "more than [limits] allows")
	}
	return true
}

func (n *narrowing) top(p Profile, why string) {
	n.tops = append(n.tops, ceiling{p.Ceiling(), why})
}

func (n *narrowing) startChild() bool {
	a := n.above
	n.e = *a.Parent
	n.e.Origins = map[string]Origin{}
	for _, f := range fields {
		n.e.Origins[f.name] = FromParent(a.ParentID)
	}
	n.tops = append(n.tops, ceiling{*a.Parent, "more than its parent has"})
	n.roster()
	if n.e.Depth >= a.Parent.MaxDepth {
		n.refuse(job.CodeDepthLimit, job.Violation{Field: "depth", Asked: strconv.FormatInt(n.e.Depth+1, 10),
			Allowed: "at most " + strconv.FormatInt(a.Parent.MaxDepth, 10), Why: "its tree may be no deeper"})
	}
	if n.e.Depth++; n.e.Depth < 1 {
		n.e.Depth = a.Parent.Depth // no parent is that deep
	}
	if a.Profile == nil {
		return true
	}
	n.tightenAll(a.Profile.standard(), FromProfile(a.Profile.Name))
	n.e.Profile, n.e.Origins["profile"] = a.Profile.Name, FromRequest
	n.inheritImage()
	n.top(*a.Profile, "more than profile "+a.Profile.Name+" allows")
	return true
}

// roster checks that the parent may delegate, and to the profile that is named.
func (n *narrowing) roster() {
	parent, named := n.above.Parent, n.above.Profile
	asked := parent.Profile
	if named != nil {
		asked = named.Name
	}
	why := ""
	switch {
	case len(parent.Delegates) == 0:
		why = "its parent's profile has no delegates"
	case asked != parent.Profile && !names(equal).within([]string{asked}, parent.Delegates):
		why = "it is not among the delegates of its parent"
	default:
		return
	}
	n.refuse(job.CodeNotInRoster, job.Violation{Field: "profile", Asked: short(asked), Allowed: showNames(parent.Delegates), Why: why})
}

// tightenAll lets the envelope have the tighter of both in every field, the budget's inheritance apart: that is frozen
// at the root.
func (n *narrowing) tightenAll(by Envelope, origin Origin) {
	for _, f := range fields {
		if f.name != "budget_inherit" && f.tighten(&n.e, &by) {
			n.e.Origins[f.name] = origin
		}
	}
	if by.Budget == nil { // missing limits allow nothing, and stay missing
		n.e.Budget = nil
	}
}

// inheritImage keeps the parent's image where the named profile has it too, else takes the profile's own where the
// parent has that.
func (n *narrowing) inheritImage() {
	p := n.above.Profile
	if p.Allows.Image == "" && len(p.Allows.Images) == 0 {
		return // a profile that says nothing of images
	}
	over := imageField().over
	theirs := p.Ceiling()
	theirs.Posture.ImageID = ""
	if _, _, wide := over(&n.e, &theirs); !wide {
		return
	}
	own := n.e
	own.Image, own.Posture.ImageID = p.Allows.Image, ""
	asked, allowed, wide := over(&own, n.above.Parent)
	if wide || own.Image == "" {
		n.refuse(job.CodeNotSubset, job.Violation{Field: "image", Asked: asked, Allowed: allowed, Why: "profile " + p.Name + " and its parent have no image in common"})
		return
	}
	n.e.Image, n.e.Posture.ImageID = own.Image, ""
	n.e.Origins["image"] = FromProfile(p.Name)
}

// settleImage gives a child that names its parent's image the digest that the parent has: a tag may have moved since.
func (n *narrowing) settleImage(w *wish) {
	if !slices.Contains(w.asked, "image") {
		return
	}
	p := n.above.Parent
	if p != nil && w.Image != "" && (SameImage(w.Image, p.Image) || w.Image == p.Posture.ImageID) {
		w.Posture.ImageID = p.Posture.ImageID
	}
}
