package envelope_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sandboxd/internal/envelope"
)

var least = map[string]int64{"cpus": envelope.MinMilliCPUs, "memory": envelope.MinMemory, "pids": 1, "nofile": 16,
	"tmp_bytes": envelope.MinTmpfs, "home_bytes": envelope.MinTmpfs, "out_bytes": envelope.MinTmpfs,
	"output_keep": envelope.MinKeep, "timeout": envelope.MinTimeoutMS}

// set writes an amount by its name; the package itself only reads them so.
func set(p *envelope.Posture, name string, v int64) {
	for n, at := range map[string]*int64{"cpus": &p.MilliCPUs, "memory": &p.Memory, "pids": &p.Pids, "nofile": &p.Nofile, "tmp_bytes": &p.TmpBytes,
		"home_bytes": &p.HomeBytes, "out_bytes": &p.OutBytes, "output_keep": &p.OutputKeep, "timeout": &p.TimeoutMS} {
		if n == name {
			*at = v
		}
	}
}

// profile draws a profile as a config can give it: minimum ≤ default ≤ limit. Sizes up to 2^61, so that sums overflow.
func profile(t *rapid.T) envelope.Profile {
	p := envelope.Profile{Name: "p", Origins: map[string]envelope.Origin{}}
	for _, name := range envelope.AmountNames() {
		top := rapid.SampledFrom([]int64{least[name] * 3, least[name] * 1000, 1 << 61}).Draw(t, "top of "+name)
		limit := rapid.Int64Range(least[name], top).Draw(t, "limit of "+name)
		set(&p.Limit, name, limit)
		set(&p.Default, name, rapid.Int64Range(least[name], limit).Draw(t, "default of "+name))
		if rapid.Bool().Draw(t, "config sets "+name) {
			p.Origins[name] = envelope.FromConfig
		}
	}
	return p
}

func asks(t *rapid.T, p envelope.Profile) envelope.Ask {
	ask := envelope.Ask{}
	for _, name := range envelope.AmountNames() {
		limit, _ := p.Limit.Amount(name)
		switch rapid.IntRange(0, 3).Draw(t, "kind of "+name) {
		case 1:
			ask[name] = rapid.Int64Range(least[name], limit).Draw(t, name)
		case 2:
			ask[name] = rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, limit + 1, math.MaxInt64})).Draw(t, name)
		}
	}
	return ask
}

func TestNoRequestGetsMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := profile(t)
		ask := asks(t, p)
		e, bad := envelope.Root(p, ask)
		named := map[string]int{}
		for _, v := range bad {
			named[v.Field]++
		}
		wrong := 0
		for name, asked := range ask {
			limit, _ := p.Limit.Amount(name)
			out := asked < least[name] || asked > limit
			if out {
				wrong++
			}
			if out != (named[name] == 1) {
				t.Fatalf("%s = %d of %d to %d: named %d times", name, asked, least[name], limit, named[name])
			}
		}
		switch {
		case wrong > 0 && len(bad) != wrong:
			t.Fatalf("%d amounts are out of bounds, %d violations: %+v", wrong, len(bad), bad)
		case wrong == 0 && len(bad) > 1:
			t.Fatalf("%+v", bad)
		case len(bad) > 0:
			if !cmp.Equal(e, envelope.Envelope{}) {
				t.Fatalf("a refusal left %+v", e)
			}
			return
		}
		admitted(t, p, ask, e)
	})
}

// admitted checks an envelope against what it came from.
func admitted(t *rapid.T, p envelope.Profile, ask envelope.Ask, e envelope.Envelope) {
	if over := e.Posture.Within(p.Limit); len(over) > 0 {
		t.Fatalf("wider than the limit: %+v", over)
	}
	if low := e.Posture.Check(); len(low) > 0 {
		t.Fatalf("below the minimum: %+v", low)
	}
	sum := uint64(e.Posture.TmpBytes) + uint64(e.Posture.HomeBytes) + uint64(e.Posture.OutBytes)
	if sum > uint64(e.Posture.Memory-envelope.TmpfsReserve) {
		t.Fatalf("%d bytes of tmpfs in a memory of %d", sum, e.Posture.Memory)
	}
	for _, name := range envelope.AmountNames() {
		got, _ := e.Posture.Amount(name)
		standard, _ := p.Default.Amount(name)
		asked, wished := ask[name]
		switch o := e.Origins[name]; {
		case wished && (got != asked || o != envelope.FromRequest):
			t.Fatalf("%s: asked %d, got %d from %q", name, asked, got, o)
		case !wished && o == envelope.Clamped && got >= standard:
			t.Fatalf("%s: clamped from %d to %d", name, standard, got)
		case !wished && o != envelope.Clamped && (got != standard || o != p.Origins[name]):
			t.Fatalf("%s: got %d from %q, the profile has %d from %q", name, got, o, standard, p.Origins[name])
		}
	}
}

// Whatever the profile, the smallest memory still makes a job: the sizes that nobody set yield.
func TestTheSmallestRequestAlwaysFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if _, bad := envelope.Root(profile(t), envelope.Ask{"memory": envelope.MinMemory}); len(bad) > 0 {
			t.Fatalf("%+v", bad)
		}
	})
}

func TestOneWideningIsRefusedAndNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := profile(t)
		ask := envelope.Ask{}
		for _, name := range envelope.AmountNames() {
			if v, _ := p.Default.Amount(name); rapid.Bool().Draw(t, "ask "+name) {
				ask[name] = v
			}
		}
		name := rapid.SampledFrom(envelope.AmountNames()).Draw(t, "widened")
		limit, _ := p.Limit.Amount(name)
		ask[name] = rapid.Int64Range(limit+1, math.MaxInt64).Draw(t, "to")
		if _, bad := envelope.Root(p, ask); len(bad) != 1 || bad[0].Field != name {
			t.Fatalf("%s = %d: %+v", name, ask[name], bad)
		}
	})
}

func TestNarrownessIsReflexiveAndTransitive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := profile(t).Default, profile(t).Default, profile(t).Default
		if len(a.Within(a)) > 0 {
			t.Fatal("not within itself")
		}
		if len(a.Within(b)) == 0 && len(b.Within(c)) == 0 && len(a.Within(c)) > 0 {
			t.Fatal("a ⊑ b ⊑ c and not a ⊑ c")
		}
		if len(a.Within(b)) == 0 && len(b.Within(a)) == 0 && a != b {
			t.Fatal("a ⊑ b ⊑ a and not a = b")
		}
	})
}

func TestShrinkingKeepsWhatStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, limit := profile(t).Default, profile(t).Limit
		before := p
		shrunk := map[string]bool{}
		stands := func(name string) bool { return len(name)%2 == 0 }
		for _, name := range p.ShrinkTo(limit, stands) {
			shrunk[name] = true
		}
		for _, name := range envelope.AmountNames() {
			was, _ := before.Amount(name)
			is, _ := p.Amount(name)
			l, _ := limit.Amount(name)
			if want := was > l && !stands(name); want != shrunk[name] || want && is != l || !want && is != was {
				t.Fatalf("%s: %d became %d under %d, listed %v", name, was, is, l, shrunk[name])
			}
		}
	})
}
