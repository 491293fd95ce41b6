package config_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/config"
)

func TestRostersAreChecked(t *testing.T) {
	chain := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "[profiles.p%02d]\n", i)
			if i+1 < n {
				fmt.Fprintf(&b, "delegates = [\"p%02d\"]\n", i+1)
			}
		}
		return b.String()
	}
	for _, c := range []struct {
		name, text, want string // want is empty where it is sound
	}{
		{"itself", "[profiles.a]\ndelegates = [\"a\"]", "profiles.a.delegates: a → a is a cycle; take one of them out"},
		{"two", "[profiles.a]\ndelegates = [\"b\"]\n[profiles.b]\ndelegates = [\"a\"]", "profiles.a.delegates: a → b → a is a cycle"},
		{"three, found from outside", "[profiles.a]\ndelegates = [\"c\"]\n[profiles.b]\ndelegates = [\"d\"]\n[profiles.c]\ndelegates = [\"b\"]\n[profiles.d]\ndelegates = [\"tester\", \"c\"]",
			"profiles.c.delegates: c → b → d → c is a cycle"},
		{"with the default", "[profiles.default]\ndelegates = [\"a\"]\n[profiles.a]\ndelegates = [\"default\"]", "profiles.a.delegates: a → default → a is a cycle"},
		{"with a starter", "[profiles.tester]\ndelegates = [\"builder\"]", "profiles.builder.delegates: builder → tester → builder is a cycle"},
		{"unknown", "[profiles.a]\ndelegates = [\"teste\"]", `profiles.a.delegates: there is no profile "teste"; there are: a, builder,`},
		{"of another case", "[profiles.a]\ndelegates = [\"Tester\"]", `there is no profile "Tester"`},
		{"twice", "[profiles.a]\ndelegates = [\"tester\", \"tester\"]", `profiles.a.delegates: "tester" is named twice`},
		{"everybody", "[profiles.a]\ndelegates = [\"*\"]", `profiles.a.delegates: "*" is no name here`},
		{"16 deep", chain(17), ""},
		{"17 deep", chain(18), "profiles.p00.delegates: p00 → p01 → p02 → p03 → p04 → p05 → p06 → p07 → p08 → p09 → p10 → p11 → p12 → p13 → p14 → p15 → p16 → p17 is 17 deep; profiles may delegate at most 16 times in a row"},
		{"a diamond", "[profiles.a]\ndelegates = [\"b\", \"c\"]\n[profiles.b]\ndelegates = [\"d\"]\n[profiles.c]\ndelegates = [\"d\"]\n[profiles.d]\n", ""},
		{"nobody", "[profiles.a]\ndelegates = []", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(c.text)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v\nlacks %q", err, c.want)
			case c.want != "" && strings.Contains(err.Error(), "\n"):
				t.Errorf("told more than once: %v", err)
			}
		})
	}
}

// A graph is refused exactly if a profile can reach itself, or a way is longer than 16.
func TestAnyRosterGraphIsDecidedRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "profiles")
		reach := make([][]bool, n)
		var b strings.Builder
		for i := range n {
			reach[i] = make([]bool, n)
			var to []string
			for j := range n {
				if rapid.IntRange(0, 5).Draw(t, fmt.Sprint(i, " to ", j)) == 0 {
					reach[i][j] = true
					to = append(to, fmt.Sprintf("%q", fmt.Sprint("q", j)))
				}
			}
			fmt.Fprintf(&b, "[profiles.q%d]\ndelegates = [%s]\n", i, strings.Join(to, ", "))
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		cycle := false
		for i := range n {
			cycle = cycle || reach[i][i]
		}
		c := config.Default(usual)
		if err := config.Parse(b.String(), &c); (err != nil) != cycle {
			t.Fatalf("cycle %v: %v\n%s", cycle, err, b.String())
		}
	})
}
