package envelope

import (
	"slices"
	"strconv"
	"strings"
)

// The lines of this file compare a field of the child with another one of the parent.

// SameImage compares names of images, an absent tag read as latest.
func SameImage(a, b string) bool { return withTag(a) == withTag(b) }

func withTag(name string) string {
	if strings.Contains(name, "@") || strings.HasPrefix(name, "sha256:") {
		return name
	}
	if slash := strings.LastIndexByte(name, '/'); !strings.Contains(name[slash+1:], ":") {
		return name + ":latest"
	}
	return name
}

// sameDigest reports whether the child runs what the parent runs. A name alone proves that only while neither is
// resolved, or the parent was admitted without an engine.
func sameDigest(child, above *Envelope) bool {
	if above.Posture.ImageID != "" || child.Image == "" {
		return child.Posture.ImageID == above.Posture.ImageID
	}
	return SameImage(child.Image, above.Image)
}

// imageField: the same digest, or one of the parent's images.
func imageField() field {
	return field{
		name: "image", path: "Image, Posture.ImageID", asked: "image",
		show: func(e *Envelope) string {
			if e.Posture.ImageID != "" {
				return e.Posture.ImageID
			}
			return e.Image
		},
		over: func(child, above *Envelope) (string, string, bool) {
			set := names(SameImage)
			named := child.Image != "" && set.within([]string{child.Image}, above.Images)
			byID := child.Posture.ImageID != "" && set.within([]string{child.Posture.ImageID}, above.Images)
			if sameDigest(child, above) || named || byID {
				return "", "", false
			}
			own := above.Image
			if own == "" {
				own = above.Posture.ImageID
			}
			asked := child.Image
			if asked == "" {
				asked = child.Posture.ImageID
			}
			return asked, showNames(set.meet([]string{everything}, append(slices.Clone(above.Images), own))), true
		},
		tighten: func(*Envelope, *Envelope) bool { return false }, // see narrowing.inheritImage
		take:    func(e, from *Envelope) { e.Image, e.Posture.ImageID = from.Image, from.Posture.ImageID },
	}
}

// profileField: the same profile, or one of the parent's roster.
func profileField() field {
	return field{
		name: "profile", path: "Profile", asked: "profile",
		show: func(e *Envelope) string { return e.Profile },
		over: func(child, above *Envelope) (string, string, bool) {
			over := child.Profile != above.Profile && !names(equal).within([]string{child.Profile}, above.Delegates)
			return child.Profile, showNames(above.Delegates), over
		},
		tighten: func(*Envelope, *Envelope) bool { return false },
		take:    func(e, from *Envelope) { e.Profile = from.Profile },
	}
}

// depthField: deeper than the parent, and no deeper than the parent lets its tree be.
func depthField() field {
	return field{
		name: "depth", path: "Depth", asked: "depth",
		show: func(e *Envelope) string { return strconv.FormatInt(e.Depth, 10) },
		over: func(child, above *Envelope) (string, string, bool) {
			over := child.Depth < above.Depth || child.Depth > max(above.MaxDepth, above.Depth)
			return strconv.FormatInt(child.Depth, 10), "at most " + strconv.FormatInt(above.MaxDepth, 10), over
		},
		tighten: func(*Envelope, *Envelope) bool { return false },
		take:    func(e, from *Envelope) { e.Depth = from.Depth },
	}
}
