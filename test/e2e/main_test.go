package e2e_test

import (
	"strings"
	"testing"

	"sandboxd/test/harness"
)

const tiny = "sandboxd/tiny:latest"

// wide lets one user have eight jobs at once.
const wide = `[capacity]
max_running = 8
max_running_per_user = 8
cpus = 16
`

func TestMain(m *testing.M) { harness.Main(m) }

// daemon is the one all tests share that only run jobs; each names its own.
func daemon(t *testing.T) *harness.Daemon {
	t.Helper()
	return harness.Shared(t, harness.Options{Config: wide})
}

// run is sbx run of a shell script in tiny.
func run(t *testing.T, script string, flags ...string) harness.Output {
	t.Helper()
	return daemon(t).Sbx(append(append([]string{"run", "--image", tiny}, flags...), "--", "sh", "-c", script)...)
}

// oneLine holds a message on stderr to the rules: one line, naming what it should.
func oneLine(t *testing.T, stderr string, names ...string) {
	t.Helper()
	text := strings.TrimSuffix(stderr, "\n")
	if text == "" || strings.Contains(text, "\n") {
		t.Errorf("want one line on stderr, got %q", stderr)
	}
	for _, n := range names {
		if !strings.Contains(text, n) {
			t.Errorf("stderr %q does not name %q", text, n)
		}
	}
}
