package delegation_test

import (
	"strings"
	"testing"

	"sandboxd/api"
)

// Each profile that comes with the daemon runs a job and says where its values are from.
func TestEachStarterProfileRunsAJob(t *testing.T) {
	d := daemon(t)
	var all []api.Profile
	d.JSON(&all, "profiles", "--json")
	own := map[string]bool{"top": true, "mid": true, "strict": true, "flat": true, "two-live": true, "two-ever": true, "bomb": true, "spender": true, "leaf": true}
	count := 0
	for _, p := range all {
		if own[p.Name] {
			continue
		}
		count++
		name := "starter-" + p.Name
		if o := d.Sbx("run", "-p", p.Name, "--image", tiny, "--name", name, "--", "true"); o.Code != 0 {
			t.Errorf("%s: %+v", p.Name, o)
			continue
		}
		in := inspect(t, d, name)
		if in.Profile != p.Name || len(in.Envelope) < 20 {
			t.Errorf("%s: profile %s with %d values", p.Name, in.Profile, len(in.Envelope))
		}
		origins := map[string]int{}
		for _, f := range in.Envelope {
			kind, of, _ := strings.Cut(f.Origin, ":")
			origins[kind]++
			if kind == "profile" && of != p.Name {
				t.Errorf("%s: %s comes from %s", p.Name, f.Field, f.Origin)
			}
			switch kind {
			case "default", "config", "profile", "request", "clamped":
			default:
				t.Errorf("%s: %s has the origin %q", p.Name, f.Field, f.Origin)
			}
			if f.Field == "image" && f.Origin != "request" {
				t.Errorf("%s: the image comes from %q", p.Name, f.Origin)
			}
		}
		if p.Name != "default" && origins["profile"] == 0 {
			t.Errorf("%s: nothing comes from the profile: %v", p.Name, origins)
		}
	}
	if count < 12 {
		t.Errorf("%d profiles", count)
	}
}
