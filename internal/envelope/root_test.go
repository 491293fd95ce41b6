package envelope_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/envelope"
	"sandboxd/internal/job"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// plain is the profile of most tests: nothing has to be clamped in it.
func plain() envelope.Profile {
	return envelope.Profile{
		Name: "default",
		Default: envelope.Posture{ImageID: "sha256:1", Runtime: envelope.RuntimeRunc, MilliCPUs: 1000, Memory: gib, Pids: 512, Nofile: 1024,
			TmpBytes: 128 * mib, HomeBytes: 512 * mib, OutBytes: 64 * mib, Inodes: 65536, HomeExec: true, OutputKeep: 512 * mib, TimeoutMS: 600_000},
		Limit: envelope.Posture{Runtime: envelope.RuntimeRunc, MilliCPUs: 4000, Memory: 8 * gib, Pids: 4096, Nofile: 65536,
			TmpBytes: 4 * gib, HomeBytes: 4 * gib, OutBytes: gib, Inodes: 1 << 20, HomeExec: true, OutputKeep: 4 * gib, TimeoutMS: 3_600_000},
		Origins: map[string]envelope.Origin{"pids": envelope.FromConfig},
	}
}

func TestWhatIsNotAskedIsTheProfiles(t *testing.T) {
	p := plain()
	e, bad := envelope.Root(p, nil)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	if diff := cmp.Diff(p.Default, e.Posture); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]envelope.Origin{"pids": envelope.FromConfig}, e.Origins); diff != "" || e.Profile != "default" {
		t.Error(e.Profile, diff)
	}
}

func TestWhatIsAskedWithinTheLimitIsTaken(t *testing.T) {
	p := plain()
	ask := envelope.Ask{"cpus": 4000, "memory": 8 * gib, "pids": 1, "nofile": 16, "tmp_bytes": 64 * kib, "home_bytes": 4 * gib,
		"out_bytes": gib, "output_keep": 64 * kib, "timeout": 1000}
	given := maps.Clone(ask)
	e, bad := envelope.Root(p, ask)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	for name, want := range ask {
		if got, ok := e.Posture.Amount(name); !ok || got != want || e.Origins[name] != envelope.FromRequest {
			t.Errorf("%s: %d from %s, asked %d", name, got, e.Origins[name], want)
		}
	}
	if len(ask) != len(envelope.AmountNames()) {
		t.Errorf("the test asks for %d amounts, there are %v", len(ask), envelope.AmountNames())
	}
	if !maps.Equal(ask, given) || !cmp.Equal(p, plain()) {
		t.Error("Root changed what it was given")
	}
}

func TestEveryWideningIsNamed(t *testing.T) {
	for _, name := range envelope.AmountNames() {
		limit, _ := plain().Limit.Amount(name)
		for _, v := range []int64{limit + 1, 1e18, math.MaxInt64} {
			e, bad := envelope.Root(plain(), envelope.Ask{name: v})
			if len(bad) != 1 || bad[0].Field != name || bad[0].Why != "more than the limit" || bad[0].Asked == "" || bad[0].Allowed == "" {
				t.Errorf("%s = %d: %+v", name, v, bad)
			}
			if !cmp.Equal(e, envelope.Envelope{}) {
				t.Errorf("%s = %d: an envelope came beside the refusal", name, v)
			}
		}
	}
}

func TestTooLittleIsNamed(t *testing.T) {
	for _, name := range envelope.AmountNames() {
		for _, v := range []int64{0, -1, math.MinInt64} {
			ask := envelope.Ask{name: v}
			_, bad := envelope.Root(plain(), ask)
			if len(bad) != 1 || bad[0].Field != name || bad[0].Why != "less than the minimum" {
				t.Errorf("%s = %d: %+v", name, v, bad)
			}
			if diff := cmp.Diff(bad, ask.TooSmall()); diff != "" {
				t.Errorf("%s = %d: %s", name, v, diff)
			}
		}
	}
}

func TestEveryViolationIsReported(t *testing.T) {
	ask := envelope.Ask{"memroy": gib, "disk": -1}
	for _, name := range envelope.AmountNames() {
		ask[name] = math.MaxInt64
	}
	ask["cpus"] = 1
	_, bad := envelope.Root(plain(), ask)
	var fields []string
	for _, v := range bad {
		fields = append(fields, v.Field)
	}
	want := slices.Sorted(maps.Keys(ask))
	slices.Sort(fields)
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Error(diff)
	}
}

func TestViolationReadsLikeASentence(t *testing.T) {
	for _, c := range []struct {
		ask  envelope.Ask
		want job.Violation
	}{
		{envelope.Ask{"memory": 16 * gib}, job.Violation{Field: "memory", Asked: "16GiB", Allowed: "64MiB to 8GiB", Why: "more than the limit"}},
		{envelope.Ask{"cpus": 4500}, job.Violation{Field: "cpus", Asked: "4.5", Allowed: "0.01 to 4", Why: "more than the limit"}},
		{envelope.Ask{"timeout": 3_600_001}, job.Violation{Field: "timeout", Asked: "1h0m0.001s", Allowed: "1s to 1h0m0s", Why: "more than the limit"}},
		{envelope.Ask{"pids": 0}, job.Violation{Field: "pids", Asked: "0", Allowed: "at least 1", Why: "less than the minimum"}},
		{envelope.Ask{"tmp": 1}, job.Violation{Field: "tmp", Asked: "1", Allowed: "no value", Why: "there is no such amount"}},
	} {
		_, bad := envelope.Root(plain(), c.ask)
		if diff := cmp.Diff([]job.Violation{c.want}, bad); diff != "" {
			t.Errorf("%v: %s", c.ask, diff)
		}
	}
}
