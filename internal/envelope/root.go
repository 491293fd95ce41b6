package envelope

import (
	"fmt"
	"maps"
	"slices"

	"sandboxd/internal/job"
)

// Ask is what a request wants of the amounts, by name ("memory", "timeout", …), in base units (bytes, thousandths of
// a core, milliseconds). A name that is absent inherits.
type Ask map[string]int64

// Root decides the envelope of a root job: unset takes the profile's default, a value within the limit is taken, a
// wider one is a violation. It returns every violation, not the first, and then no envelope.
func Root(p Profile, ask Ask) (Envelope, []job.Violation) {
	e := Envelope{Profile: p.Name, Posture: p.Default, Origins: map[string]Origin{}}
	maps.Copy(e.Origins, p.Origins)
	var bad []job.Violation
	for _, a := range amounts {
		asked, ok := ask[a.name]
		if !ok {
			continue
		}
		limit := *a.at(&p.Limit)
		if asked < a.min || asked > limit {
			bad = append(bad, violation(a, asked, limit))
			continue
		}
		*a.at(&e.Posture) = asked
		e.Origins[a.name] = FromRequest
	}
	if len(bad) == 0 {
		bad = fitTmpfs(&e, ask)
	}
	if len(bad) > 0 {
		return Envelope{}, bad
	}
	return e, nil
}

func violation(a amount, asked, limit int64) job.Violation {
	why := "more than the limit"
	if asked < a.min {
		why = "less than the minimum"
	}
	return job.Violation{Field: a.name, Asked: a.show(asked), Allowed: a.show(a.min) + " to " + a.show(limit), Why: why}
}

var tmpfsNames = []string{"tmp_bytes", "home_bytes", "out_bytes"}

// fitTmpfs keeps Σ tmpfs ≤ memory − TmpfsReserve, for they are charged to the job's memory. Sizes that were asked for
// stand or are refused; the others shrink in proportion.
func fitTmpfs(e *Envelope, ask Ask) []job.Violation {
	room := e.Posture.Memory - TmpfsReserve
	var fixed, free int64
	for _, name := range tmpfsNames {
		v, _ := e.Posture.Amount(name)
		if _, ok := ask[name]; ok {
			fixed += v
		} else {
			free += v
		}
	}
	if fixed+free <= room {
		return nil
	}
	for _, a := range amounts {
		if _, asked := ask[a.name]; asked || !slices.Contains(tmpfsNames, a.name) {
			continue
		}
		v := a.at(&e.Posture)
		share := int64(float64(*v) / float64(free) * float64(max(room-fixed, 0)))
		*v = max(share&^4095, a.min)
		e.Origins[a.name] = Clamped
	}
	p := e.Posture
	if sum := p.TmpBytes + p.HomeBytes + p.OutBytes; sum > room {
		return []job.Violation{{Field: "tmp_bytes + home_bytes + out_bytes", Asked: ShowBytes(sum),
			Allowed: ShowBytes(room),
			Why:     fmt.Sprintf("they are held in the job's memory (%s), of which %s must stay free", ShowBytes(p.Memory), ShowBytes(TmpfsReserve))}}
	}
	return nil
}

// Check holds a posture from a config to its bounds: every amount at least its minimum, tmpfs within memory.
func (p Posture) Check() []job.Violation {
	var bad []job.Violation
	for _, a := range amounts {
		if v := *a.at(&p); v < a.min {
			bad = append(bad, job.Violation{Field: a.name, Asked: a.show(v), Allowed: "at least " + a.show(a.min)})
		}
	}
	return bad
}

// Within lists the amounts of p that are larger than those of limit.
func (p Posture) Within(limit Posture) []job.Violation {
	var bad []job.Violation
	for _, a := range amounts {
		if v, l := *a.at(&p), *a.at(&limit); v > l {
			bad = append(bad, job.Violation{Field: a.name, Asked: a.show(v), Allowed: "at most " + a.show(l)})
		}
	}
	return bad
}
