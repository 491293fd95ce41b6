package admission

import (
	"context"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

// checkImage resolves the image to an id; a child keeps the id of its parent. While the engine is away the name is kept
// and resolved when the job starts. Whether it may run is decided by the envelope, by name and by id.
func checkImage(ctx context.Context, c *Checker, a *attempt) error {
	name, id := a.req.Image, ""
	switch e := a.out.Envelope; {
	case name == "":
		name, id = e.Image, e.Posture.ImageID
	case a.parent != nil && (envelope.SameImage(name, a.parent.Envelope.Image) || name == a.parent.Envelope.Posture.ImageID):
		id = a.parent.Envelope.Posture.ImageID
	}
	if name == "" && id == "" {
		return job.Errorf(job.CodeImage, "image", "profile %s has no image of its own; name one", a.out.Envelope.Profile)
	}
	if id == "" {
		var err error
		switch id, err = c.images.Resolve(ctx, name); job.CodeOf(err) {
		case job.CodeImage:
			return a.refuseImage(err)
		case job.CodeEngine:
			id = ""
		default:
			if err != nil {
				return err
			}
		}
	}
	a.out.Spec.Image, a.out.Spec.ImageID = name, id
	if a.req.Image == "" {
		return nil
	}
	a.ask.ImageID = id
	if a.parent != nil && id != "" && id == a.parent.Envelope.Posture.ImageID {
		a.ask.Image = a.parent.Envelope.Image // by that name the profile knows it
	}
	return nil
}

// refuseImage keeps from a job which images the host has beside those that it may run.
func (a *attempt) refuseImage(err error) error {
	if a.parent != nil {
		if _, bad := envelope.Narrow(a.above, a.ask); len(bad) > 0 {
			return envelope.Denial(bad)
		}
	}
	return err
}
