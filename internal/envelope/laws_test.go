package envelope_test

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/envelope"
)

func mapsKeys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

func in(a, b envelope.Envelope) bool { return len(envelope.Subset(a, b)) == 0 }

func TestSubsetIsReflexive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if e := anEnvelope(t, "e"); !in(e, e) {
			t.Fatalf("%+v", envelope.Subset(e, e))
		}
	})
	for name, e := range map[string]envelope.Envelope{"zero": {}, "odd words": {Bounds: envelope.Bounds{Trust: "?", MaxRisk: "?", Egress: "?", Mode: "?", Depth: 9}}} {
		if !in(e, e) {
			t.Errorf("%s: %+v", name, envelope.Subset(e, e))
		}
	}
}

// Random envelopes are seldom comparable, so a chain is made by tightening and a third one is drawn as well.
func TestSubsetIsTransitive(t *testing.T) {
	chains := 0
	rapid.Check(t, func(t *rapid.T) {
		a := anEnvelope(t, "a")
		b := lower(t, "b", a)
		c := lower(t, "c", b)
		if !in(b, a) || !in(c, b) {
			t.Fatalf("lower makes what is not: %+v %+v", envelope.Subset(b, a), envelope.Subset(c, b))
		}
		chains++
		if bad := envelope.Subset(c, a); len(bad) > 0 {
			t.Fatalf("c ⊑ b ⊑ a and not c ⊑ a: %+v", bad)
		}
		d := anEnvelope(t, "d")
		if in(a, d) && !in(c, d) {
			t.Fatalf("c ⊑ a ⊑ d and not c ⊑ d: %+v", envelope.Subset(c, d))
		}
	})
	if chains == 0 {
		t.Error("no chain was tried")
	}
}

// lower draws an envelope within another.
func lower(t *rapid.T, label string, above envelope.Envelope) envelope.Envelope {
	e := envelope.Tighten(anEnvelope(t, label), above)
	e.Image, e.Posture.ImageID = above.Image, above.Posture.ImageID
	e.Profile = above.Profile
	if len(above.Delegates) > 0 && rapid.Bool().Draw(t, label+" is delegated") {
		e.Profile = pick(t, label+" delegate", above.Delegates)
	}
	if len(above.Images) > 0 && rapid.Bool().Draw(t, label+" has another image") {
		e.Image, e.Posture.ImageID = pick(t, label+" other image", above.Images), ""
	}
	e.Depth = rapid.Int64Range(above.Depth, max(above.MaxDepth, above.Depth)).Draw(t, label+" depth below")
	return e
}

// Two envelopes within each other bind alike: they show the same, sets regardless of their order.
func TestSubsetIsAntisymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anEnvelope(t, "a")
		b := envelope.Tighten(a, a)
		if rapid.Bool().Draw(t, "another") {
			b = lower(t, "b", a)
		}
		if !in(a, b) || !in(b, a) {
			return
		}
		af, bf := a.Fields(), b.Fields()
		for i := range af {
			if x, y := sorted(af[i].Value), sorted(bf[i].Value); x != y && !wordsOfOneMeaning[af[i].Name] {
				t.Fatalf("%s: %q and %q are within each other", af[i].Name, x, y)
			}
		}
	})
}

// Mounts inside one another and images with and without a tag bind alike without being the same; a profile may delegate
// to another and be its delegate in two envelopes that no config could make.
var wordsOfOneMeaning = map[string]bool{"mounts": true, "images": true, "image": true, "profile": true, "tools.allow": true}

func sorted(list string) string {
	words := strings.Split(list, ", ")
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// The tighter of two is within both, and nothing within both is wider than it.
func TestTheTighterOfTwoIsTheirMeet(t *testing.T) {
	special := map[string]bool{"image": true, "profile": true, "depth": true}
	over := func(a, b envelope.Envelope) (out []string) {
		for _, v := range envelope.Subset(a, b) {
			if !special[v.Field] {
				out = append(out, v.Field)
			}
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anEnvelope(t, "a"), anEnvelope(t, "b"), anEnvelope(t, "c")
		m := envelope.Tighten(a, b)
		if bad := append(over(m, a), over(m, b)...); len(bad) > 0 {
			t.Fatalf("the meet is wider: %v", bad)
		}
		c = envelope.Tighten(envelope.Tighten(c, a), b)
		if bad := over(c, m); len(bad) > 0 {
			t.Fatalf("within both and not within the meet: %v", bad)
		}
	})
}
