package envelope_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/envelope"
)

func TestFieldsAreListedInAStableOrderWithTheirOrigins(t *testing.T) {
	e, bad := envelope.Root(plain(), envelope.Ask{"memory": 100 * mib, "timeout": 90_000})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	e.Origins["image"] = envelope.FromRequest
	want := []envelope.Field{
		{Name: "image", Value: "sha256:1", Origin: "request"},
		{Name: "runtime", Value: "runc", Origin: "default"},
		{Name: "cpus", Value: "1", Origin: "default"},
		{Name: "memory", Value: "100MiB", Origin: "request"},
		{Name: "pids", Value: "512", Origin: "config"},
		{Name: "nofile", Value: "1024", Origin: "default"},
		{Name: "tmp_bytes", Value: "9708KiB", Origin: "clamped"},
		{Name: "home_bytes", Value: "38652KiB", Origin: "clamped"},
		{Name: "out_bytes", Value: "4880KiB", Origin: "clamped"},
		{Name: "output_keep", Value: "512MiB", Origin: "default"},
		{Name: "timeout", Value: "1m30s", Origin: "request"},
		{Name: "inodes", Value: "65536", Origin: "default"},
		{Name: "home_exec", Value: "true", Origin: "default"},
	}
	for range 20 {
		if diff := cmp.Diff(want, e.Fields()); diff != "" {
			t.Fatal(diff)
		}
	}
}

// A number of the posture that no table orders would bound nothing: a new one must be an amount, or be named here with
// the reason why no request can touch it.
func TestEveryFieldOfThePostureIsOrdered(t *testing.T) {
	fixed := map[string]string{
		"ImageID":  "resolved at admission, from a roster",
		"Runtime":  "the operator's alone",
		"Inodes":   "the daemon's alone, and in no request",
		"HomeExec": "the operator's alone",

		"DiskBytes": "0 is none, so it has no minimum; ordered in the table of fields",
		"Shm":       "the operator's alone",
	}
	var p envelope.Posture
	v := reflect.ValueOf(&p).Elem()
	ordered := 0
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if fixed[name] != "" {
			continue
		}
		if v.Field(i).Kind() != reflect.Int64 {
			t.Errorf("%s: a %s without an order", name, v.Field(i).Kind())
			continue
		}
		v.Field(i).SetInt(7)
		wider := p.Within(envelope.Posture{})
		if len(wider) != 1 {
			t.Errorf("%s is in no table: widening it gives %+v", name, wider)
		} else if got, ok := p.Amount(wider[0].Field); !ok || got != 7 {
			t.Errorf("%s is shown as %s = %d", name, wider[0].Field, got)
		}
		v.Field(i).SetInt(0)
		ordered++
	}
	if names := envelope.AmountNames(); ordered != len(names) || len(slices.Compact(slices.Sorted(slices.Values(names)))) != ordered {
		t.Errorf("%d ordered fields, amounts %v", ordered, names)
	}
	if _, ok := p.Amount("Memory"); ok {
		t.Error("amounts answer to names that are none")
	}
}

// A zero posture must never pass for one without limits.
func TestZeroIsBelowEveryMinimum(t *testing.T) {
	if bad := (envelope.Posture{}).Check(); len(bad) != len(envelope.AmountNames()) {
		t.Errorf("%+v", bad)
	}
	if bad := plain().Default.Check(); len(bad) > 0 {
		t.Errorf("%+v", bad)
	}
}

func TestFrozenEnvelopeReadsBack(t *testing.T) {
	e, bad := envelope.Root(plain(), envelope.Ask{"memory": 2 * gib})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back envelope.Envelope
	if err := json.Unmarshal(b, &back); err != nil || !cmp.Equal(e, back) {
		t.Errorf("%v: %s", err, cmp.Diff(e, back))
	}
}

func TestShowBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1: "1B", 1023: "1023B", 1024: "1KiB", 1536: "1536B", 3 << 20: "3MiB", 1 << 30: "1GiB",
		5 << 40: "5TiB", 1<<30 + 1: "1073741825B", -1: "-1B", math.MaxInt64: "9223372036854775807B"} {
		if got := envelope.ShowBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
