package job_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/job"
)

func TestIDsAreOrderedByBirthAndParseBack(t *testing.T) {
	var last job.ID
	for range 10_000 {
		id, err := job.NewID()
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("%s was born after %s and sorts before it", id, last)
		}
		if back, err := job.ParseID(id.String()); err != nil || back != id {
			t.Fatalf("ParseID(%s) = %s, %v", id, back, err)
		}
		if id[14] != '7' {
			t.Fatalf("%s is not of version 7", id)
		}
		last = id
	}
}

const whole = "0191e0c2-1f3a-7c4d-8e5f-001122334455"

func TestParseIDTakesWholeIDsOnly(t *testing.T) {
	if id, err := job.ParseID(whole); err != nil || id != whole {
		t.Fatalf("%s, %v", id, err)
	}
	for name, s := range map[string]string{
		"empty":            "",
		"a beginning":      whole[:8],
		"upper case":       strings.ToUpper(whole),
		"braces":           "{" + whole + "}",
		"urn":              "urn:uuid:" + whole,
		"no dashes":        strings.ReplaceAll(whole, "-", ""),
		"one too long":     whole + "0",
		"one too short":    whole[:35],
		"dash misplaced":   "0191e0c-21f3a-7c4d-8e5f-001122334455",
		"not hex":          "0191e0c2-1f3a-7c4d-8e5f-00112233445g",
		"path":             "../../../../../../../../../etc/passwd",
		"percent":          "%2e%2e%2f1f3a-7c4d-8e5f-001122334455",
		"NUL":              whole[:35] + "\x00",
		"newline":          whole[:35] + "\n",
		"full-width digit": whole[:33] + "５",
		"very long":        strings.Repeat("a", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			id, err := job.ParseID(s)
			if err == nil || id != "" || job.CodeOf(err) != job.CodeInvalid {
				t.Fatalf("%q, %v", id, err)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestPrefixTakesBeginningsOfIDs(t *testing.T) {
	for n := 1; n <= len(whole); n++ {
		p, err := job.Prefix(strings.ToUpper(whole[:n]))
		if n < job.MinPrefix {
			if job.CodeOf(err) != job.CodeInvalid {
				t.Errorf("%d characters: %v", n, err)
			}
			continue
		}
		if err != nil || p != whole[:n] {
			t.Errorf("%d characters: %q, %v", n, p, err)
		}
	}
}

func TestPrefixRefusesWhatIsNoBeginning(t *testing.T) {
	for _, s := range []string{"", "abc", "../x", "%2e%2e", "0191-", "0191e0c21", "0191e0c2_", "xyzw", "0191e0c2-1f3a-7c4d-8e5f-0011223344556",
		"%", "'; --", "0191\x00", " 0191", "0191 ", "ＡＢＣＤ", strings.Repeat("0", 1<<20)} {
		if p, err := job.Prefix(s); job.CodeOf(err) != job.CodeInvalid || p != "" {
			t.Errorf("%.40q: %q, %v", s, p, err)
		}
	}
}

// What passes goes into a database query and into messages: only hex digits and dashes may.
func TestPrefixLetsOnlyHexAndDashesPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9a-fA-F-]{0,40}`)).Draw(t, "s")
		p, err := job.Prefix(s)
		if err == nil && (strings.Trim(p, "0123456789abcdef-") != "" || len(p) < job.MinPrefix || len(p) > 36) {
			t.Fatalf("%q passed as %q", s, p)
		}
	})
}
