package enginetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"sandboxd/internal/engine/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheProgramInBusyboxsPlace(t *testing.T) {
	program, err := enginetest.BuildProgram()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, program, 0o700); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]int{"exit 7": 7, "exit 0": 0, "sleep 0": 0} {
		run := exec.Command(file, "sh", "-c", script)
		_ = run.Run() // the code says it
		if code := run.ProcessState.ExitCode(); code != want {
			t.Errorf("%s: exit code %d", script, code)
		}
	}
}

func TestFakeConforms(t *testing.T) {
	enginetest.Conformance(t, func(t *testing.T) enginetest.Engine {
		f := enginetest.NewFake()
		f.OnStart = enginetest.ScriptHook
		t.Cleanup(func() { _ = f.Close() })
		return f
	})
}

func TestDockerConforms(t *testing.T) {
	enginetest.Conformance(t, func(t *testing.T) enginetest.Engine { return enginetest.Real(t) })
}
