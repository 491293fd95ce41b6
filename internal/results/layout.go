package results

import "sandboxd/internal/job"

// Bounds on Options.Keep in bytes. Below MinKeep there is no room for a head and a ring worth the name.
const (
	MinKeep = 64 << 10
	MaxKeep = 1 << 40
)

// TailSize is how much of the end is kept at least when the middle is lost, headers included. A Keep that has no room
// for it keeps less than half of itself as tail.
const TailSize = 1 << 20

const (
	pageSize = 4 << 10
	// anchorStep is the distance of known record starts in the ring; what is overwritten ends at one of them.
	anchorStep = 64 << 10
	// ringSize leaves TailSize after the largest record took the room of the oldest ones, whole steps at a time.
	ringSize = TailSize + anchorStep + MaxPayload + pageSize
)

// layout is where the parts of a file lie. Records have positions: in [0, head) those of the head, from head on those
// that go round in the ring.
type layout struct{ head, ring int64 }

func layoutFor(keep int64) (layout, error) {
	if keep < MinKeep || keep > MaxKeep {
		return layout{}, job.Errorf(job.CodeInvalid, "output_keep", "%d bytes is not within %d … %d", keep, int64(MinKeep), int64(MaxKeep))
	}
	ring := min(ringSize, (keep-pageSize)/2)
	return layout{head: keep - pageSize - ring, ring: ring}, nil
}

// at is the place in the file of a position.
func (l layout) at(pos int64) int64 {
	if pos < l.head {
		return pageSize + pos
	}
	return pageSize + l.head + (pos-l.head)%l.ring
}

// run is how many bytes from pos on lie together in the file.
func (l layout) run(pos int64) int64 {
	if pos < l.head {
		return l.head + l.ring - pos
	}
	return l.ring - (pos-l.head)%l.ring
}

// last is the position after the last byte of a file whose ring has not turned.
func (l layout) last() int64 { return l.head + l.ring }

// maxPayload bounds a record so that a small ring still holds several.
func (l layout) maxPayload() int { return int(min(MaxPayload, l.ring/4-HeaderSize)) }

func (l layout) step() int64 { return min(anchorStep, l.ring/16) }

// sound says whether layoutFor could have made l; a file may claim anything.
func (l layout) sound() bool {
	if l.head < 0 || l.ring < 0 || l.head > MaxKeep || l.ring > MaxKeep {
		return false
	}
	same, err := layoutFor(l.head + l.ring + pageSize)
	return err == nil && same == l
}
