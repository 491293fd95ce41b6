package archtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// wallFindings holds a file to its room. Tests may stand together what the walls keep apart; what ships may not.
func wallFindings(s source) (out []string) {
	r, ok := roomOf(s.dir)
	if !ok {
		return []string{fmt.Sprintf("%s: folder %s is in no room of the table; add it to rooms_test.go and docs/architecture.md", s.path, s.dir)}
	}
	for _, i := range s.imports {
		dir, ours := strings.CutPrefix(i, module+"/")
		if ours && !s.test && !r.allows(dir) {
			out = append(out, fmt.Sprintf("%s: room %s may not import %s, only %v", s.path, r.folder, dir, r.may))
		}
	}
	return out
}

// libraryFindings keeps sensitive libraries in their rooms. Tests are held to the SDK's wall only.
func libraryFindings(s source) (out []string) {
	r, _ := roomOf(s.dir)
	for _, i := range s.imports {
		for _, l := range libraries {
			if !strings.HasPrefix(i+"/", strings.TrimSuffix(l.prefix, "/")+"/") || s.test && !l.testsToo {
				continue
			}
			if l.only != nil && !slices.Contains(l.only, r.folder) || slices.Contains(l.never, r.folder) {
				out = append(out, fmt.Sprintf("%s imports %s: %s", s.path, i, l.why))
			}
		}
	}
	return out
}

func TestRoomsImportOnlyWhatTheTableAllows(t *testing.T) { hold(t, wallFindings) }

func TestLibrariesStayInTheirRooms(t *testing.T) { hold(t, libraryFindings) }

// The table itself is tried on walls that must stand, so that one gone soft is seen.
func TestWallsThatMustStand(t *testing.T) {
	for _, w := range []struct{ from, to string }{
		{"internal/job", "internal/envelope"}, {"internal/envelope", "internal/store"}, {"internal/admission", "internal/scheduler"},
		{"internal/admission", "internal/callerfs"}, {"internal/runner", "internal/engine"}, {"internal/runner", "internal/store"},
		{"internal/server", "internal/engine"}, {"internal/server", "internal/envelope"}, {"internal/server", "internal/scheduler"},
		{"internal/wire", "internal/job"}, {"internal/supervise", "internal/job"}, {"internal/engine", "internal/job"},
		{"client", "internal/job"}, {"cmd/sbx", "internal/job"}, {"cmd/sbx-init", "internal/job"}, {"cmd/sandboxd", "client"},
		{"internal/netpolicy", "internal/netpolicy/proxy"}, {"internal/envelope", "internal/netpolicy/proxy"}, {"internal/budget", "internal/envelope"},
		{"images", "internal/engine"}, {"api", "internal/job"}, {"internal/results", "internal/store"},
	} {
		if r, ok := roomOf(w.from); !ok || r.allows(w.to) {
			t.Errorf("%s may import %s", w.from, w.to)
		}
	}
}

// hold runs a rule over the whole module.
func hold(t *testing.T, rule func(source) []string) {
	t.Helper()
	for _, s := range sources(t) {
		for _, f := range rule(s) {
			t.Error(f)
		}
	}
}
