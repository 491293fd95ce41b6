package envelope_test

import (
	"math"
	"testing"

	"sandboxd/internal/envelope"
)

func TestTmpfsFitsIntoTheMemory(t *testing.T) {
	const reserve = envelope.TmpfsReserve
	for _, c := range []struct {
		name           string
		ask            envelope.Ask
		tmp, home, out int64 // 0: refused
		clamped        []string
	}{
		{"enough", envelope.Ask{"memory": gib}, 128 * mib, 512 * mib, 64 * mib, nil},
		{"exactly enough", envelope.Ask{"memory": 704*mib + reserve}, 128 * mib, 512 * mib, 64 * mib, nil},
		{"a page short", envelope.Ask{"memory": 704*mib + reserve - 1}, 128*mib - 4*kib, 512*mib - 4*kib, 64*mib - 4*kib, []string{"tmp_bytes", "home_bytes", "out_bytes"}},
		{"half", envelope.Ask{"memory": 352*mib + reserve}, 67_121_152, 268_394_496, 33_574_912, []string{"tmp_bytes", "home_bytes", "out_bytes"}},
		{"the smallest memory", envelope.Ask{"memory": 64 * mib}, 3_076_096, 12_124_160, 1_568_768, []string{"tmp_bytes", "home_bytes", "out_bytes"}},
		{"one asked, the others yield", envelope.Ask{"home_bytes": 960 * mib}, 11_161_600, 960 * mib, 5_611_520, []string{"tmp_bytes", "out_bytes"}},
		{"two asked, the last yields", envelope.Ask{"memory": 200 * mib, "tmp_bytes": 100 * mib, "home_bytes": 50 * mib}, 100 * mib, 50 * mib, 2 * mib, []string{"out_bytes"}},
		{"all asked and fitting", envelope.Ask{"memory": 200 * mib, "tmp_bytes": 100 * mib, "home_bytes": 50 * mib, "out_bytes": 2 * mib}, 100 * mib, 50 * mib, 2 * mib, nil},
		{"all asked, a byte too much", envelope.Ask{"memory": 200 * mib, "tmp_bytes": 100 * mib, "home_bytes": 50 * mib, "out_bytes": 2*mib + 1}, 0, 0, 0, nil},
		{"one asked fills all", envelope.Ask{"memory": 200 * mib, "tmp_bytes": 152 * mib}, 0, 0, 0, nil},
		{"one asked leaves the minima", envelope.Ask{"memory": 200 * mib, "tmp_bytes": 152*mib - 128*kib}, 152*mib - 128*kib, 64 * kib, 64 * kib, []string{"home_bytes", "out_bytes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, bad := envelope.Root(plain(), c.ask)
			if c.tmp == 0 {
				if len(bad) != 1 || bad[0].Field != "tmp_bytes + home_bytes + out_bytes" {
					t.Errorf("%+v", bad)
				}
				return
			}
			p := e.Posture
			if len(bad) > 0 || p.TmpBytes != c.tmp || p.HomeBytes != c.home || p.OutBytes != c.out {
				t.Errorf("tmp %d, home %d, out %d; %+v", p.TmpBytes, p.HomeBytes, p.OutBytes, bad)
			}
			marked := 0
			for _, o := range e.Origins {
				if o == envelope.Clamped {
					marked++
				}
			}
			for _, name := range c.clamped {
				if e.Origins[name] != envelope.Clamped {
					t.Errorf("%s comes from %q", name, e.Origins[name])
				}
			}
			if marked != len(c.clamped) {
				t.Errorf("%d amounts are marked as clamped: %v", marked, e.Origins)
			}
		})
	}
}

// A large size beside tiny ones once pushed those up to their minimum without giving way itself.
func TestTinySizesKeepTheirMinimum(t *testing.T) {
	p := plain()
	p.Default.OutBytes, p.Default.TmpBytes, p.Default.HomeBytes = envelope.MinTmpfs, envelope.MinTmpfs, 4*gib
	e, bad := envelope.Root(p, envelope.Ask{"memory": envelope.MinMemory})
	if len(bad) > 0 || e.Posture.OutBytes != envelope.MinTmpfs || e.Posture.HomeBytes != 16*mib-2*envelope.MinTmpfs {
		t.Errorf("%+v, %+v", e.Posture, bad)
	}
	if e.Origins["out_bytes"] == envelope.Clamped || e.Origins["home_bytes"] != envelope.Clamped {
		t.Errorf("%v", e.Origins)
	}
}

// Sums that no int64 holds once looked negative, and so as if they fitted.
func TestSumsThatOverflowAreRefused(t *testing.T) {
	p := plain()
	p.Limit.TmpBytes, p.Limit.HomeBytes, p.Limit.OutBytes = math.MaxInt64, math.MaxInt64, math.MaxInt64
	for _, ask := range []envelope.Ask{
		{"tmp_bytes": math.MaxInt64, "home_bytes": math.MaxInt64},
		{"tmp_bytes": math.MaxInt64, "home_bytes": math.MaxInt64, "out_bytes": math.MaxInt64},
		{"tmp_bytes": 1 << 62, "home_bytes": 1 << 62},
		{"tmp_bytes": 1 << 62, "home_bytes": 1 << 62, "out_bytes": 64 * kib},
		{"tmp_bytes": 1e18},
	} {
		if e, bad := envelope.Root(p, ask); len(bad) == 0 {
			t.Errorf("%v: admitted as %+v", ask, e.Posture)
		}
	}
	p.Default.TmpBytes, p.Default.HomeBytes, p.Default.OutBytes = math.MaxInt64, math.MaxInt64, math.MaxInt64
	if e, bad := envelope.Root(p, nil); len(bad) == 0 && e.Posture.TmpBytes+e.Posture.HomeBytes+e.Posture.OutBytes > gib-envelope.TmpfsReserve {
		t.Errorf("defaults that overflow: %+v", e.Posture)
	}
}
