package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func build(t *testing.T, flags ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "sbx-init")
	cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", to}, flags...), ".")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return to
}

func TestCommandLine(t *testing.T) {
	bin := build(t)
	tests := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string // part of it
	}{
		{"refuses to be anything but PID 1", nil, 2, "", "not process 1"},
		{"version", []string{"--version"}, 0, "sbx-init, protocol 1\n", ""},
		{"unknown subcommand", []string{"frobnicate"}, 2, "", `unknown subcommand "frobnicate"`},
		{"unknown flag", []string{"--frobnicate"}, 2, "", "frobnicate"},
		{"bad duration", []string{"--orphan-grace", "soon"}, 2, "", "soon"},
		{"stub with arguments", []string{"stub", "x"}, 2, "", `unknown subcommand "stub"`},
		{"stub without init", []string{"stub"}, 1, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(bin, tt.args...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit %d: %s", code, stderr.String())
			}
			if !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("%q, %q", stdout.String(), stderr.String())
			}
		})
	}
}

func TestTheBinaryIsSmallAndStatic(t *testing.T) {
	bin := build(t, "-ldflags", "-s -w")
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 4<<20 {
		t.Errorf("%d bytes", info.Size())
	}
	out, err := exec.Command(bin, "--version").Output() // runs, and needs no loader:
	if err != nil || len(out) == 0 {
		t.Error(err)
	}
	raw, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw[:min(len(raw), 8192)]), "/ld-linux") {
		t.Error("not static")
	}
}
