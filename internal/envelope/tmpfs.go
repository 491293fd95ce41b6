package envelope

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"sandboxd/internal/job"
)

var tmpfsNames = []string{"tmp_bytes", "home_bytes", "out_bytes"}

// tmpfsTogether names all three in a refusal.
const tmpfsTogether = "tmp_bytes + home_bytes + out_bytes"

// tmpfsPage is what sizes of tmpfs are rounded down to.
const tmpfsPage = 4096

// fitTmpfs keeps Σ tmpfs ≤ memory − TmpfsReserve, for they are charged to the job's memory. Sizes that were asked for
// stand or are refused; the others shrink, each by the same part of what it has above its minimum.
func fitTmpfs(e *Envelope, ask Ask) []job.Violation {
	room := e.Posture.Memory - TmpfsReserve
	if e.Posture.tmpfsSum() <= room {
		return nil
	}
	spare, excess := room, int64(0)
	var yielding []amount
	for _, a := range amounts {
		if !slices.Contains(tmpfsNames, a.name) {
			continue
		}
		v := *a.at(&e.Posture)
		if _, asked := ask[a.name]; asked {
			spare -= v
			continue
		}
		spare -= a.min
		excess = add(excess, v-a.min)
		yielding = append(yielding, a)
	}
	for _, a := range yielding {
		v := a.at(&e.Posture)
		if fit := a.min + portion(*v-a.min, spare, excess)&^(tmpfsPage-1); fit < *v {
			*v = fit
			e.Origins[a.name] = Clamped
		}
	}
	if sum := e.Posture.tmpfsSum(); sum > room {
		return []job.Violation{{Field: tmpfsTogether, Asked: ShowBytes(sum),
			Allowed: ShowBytes(room),
			Why:     fmt.Sprintf("they are held in the job's memory (%s), of which %s must stay free", ShowBytes(e.Posture.Memory), ShowBytes(TmpfsReserve))}}
	}
	return nil
}

func (p Posture) tmpfsSum() int64 { return add(add(p.TmpBytes, p.HomeBytes), p.OutBytes) }

// add saturates: a sum that no int64 holds is the largest there is. Neither part is negative.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// portion is v × spare ÷ excess, rounded down, 0 where nothing is to spare; v ≤ excess.
func portion(v, spare, excess int64) int64 {
	if spare <= 0 || v <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(v), uint64(spare))
	q, _ := bits.Div64(hi, lo, uint64(excess))
	return int64(q)
}
