package enginetest_test

import (
	"testing"

	"go.uber.org/goleak"

	"sandboxd/internal/engine/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
