package sandbox_test

import (
	"slices"
	"testing"
	"time"
)

// median of durations, in milliseconds.
func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkSlot takes slots through their whole life and reports the median of each step:
//
//	go test -run '^$' -bench Slot -benchtime 20x
func BenchmarkSlot(b *testing.B) {
	r := openRoom(b, nil, nil)
	steps := map[string][]float64{}
	for b.Loop() {
		began := time.Now()
		sl, err := r.Fill(b.Context(), r.request())
		if err != nil {
			b.Fatal(err)
		}
		steps["fill"] = append(steps["fill"], ms(time.Since(began)))
		for _, s := range sl.Evidence().Steps {
			steps["fill/"+s.Name] = append(steps["fill/"+s.Name], s.MS)
		}
		took := func(name string, do func() error) {
			began := time.Now()
			if err := do(); err != nil {
				b.Fatal(name, ": ", err)
			}
			steps[name] = append(steps[name], ms(time.Since(began)))
		}
		took("handover", func() error { return sl.HandOver(b.Context(), r.posture()) })
		took("readings", func() error { _, err := sl.Readings(); return err })
		took("freeze", func() error { return sl.Freeze(b.Context()) })
		took("thaw", func() error { return sl.Thaw(b.Context()) })
		took("killjob", func() error { return sl.KillJob(b.Context()) })
		took("remove", func() error { return sl.Remove(b.Context()) })
	}
	for name, all := range steps {
		b.ReportMetric(median(all), name+"-ms")
	}
}

// BenchmarkKillForkBomb kills a bomb that fills 512 pids.
func BenchmarkKillForkBomb(b *testing.B) {
	r := openRoom(b, nil, nil)
	p := r.posture()
	p.Pids, p.MilliCPUs, p.Memory = 512, 1000, 512<<20
	var kills []float64
	for b.Loop() {
		req := r.request()
		req.Posture = p
		sl := r.fill(b, req)
		command(b, sl, p, "exec 2>/dev/null; "+forkBomb)
		within(b, 20*time.Second, "the bomb fills its pids", func() bool { return pids(b, sl) >= p.Pids-16 })
		began := time.Now()
		if err := sl.KillJob(b.Context()); err != nil {
			b.Fatal(err)
		}
		kills = append(kills, ms(time.Since(began)))
	}
	b.ReportMetric(median(kills), "killjob-ms")
	b.ReportMetric(slices.Max(kills), "killjob-max-ms")
}
