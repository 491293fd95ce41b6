package archtest_test

import (
	"strings"
	"testing"
)

// A rule that sees nothing holds nothing: each is tried on a source that breaks it and on one that just does not.
func TestRulesSeeWhatBreaksThem(t *testing.T) {
	long := strings.Repeat("\n", 120)
	for _, c := range []struct {
		name string
		rule func(source) []string
		path string
		text string
		bad  bool
	}{
		{"a wall", wallFindings, "internal/job/x.go", "package job\nimport _ \"sandboxd/internal/store\"", true},
		{"a wall from below a room", wallFindings, "internal/engine/enginetest/x.go", "package enginetest\nimport _ \"sandboxd/internal/job\"", true},
		{"a room's own parts", wallFindings, "internal/engine/enginetest/x.go", "package enginetest\nimport _ \"sandboxd/internal/engine\"", false},
		{"a test over a wall", wallFindings, "internal/job/x_test.go", "package job\nimport _ \"sandboxd/internal/store\"", false},
		{"a folder without a room", wallFindings, "internal/pool/x.go", "package pool", true},
		{"a name that only begins like a room's", wallFindings, "internal/jobs/x.go", "package jobs", true},
		{"the SDK in a test", libraryFindings, "internal/runner/x_test.go", "package runner\nimport _ \"github.com/docker/docker/client\"", true},
		{"the SDK at home", libraryFindings, "internal/engine/x.go", "package engine\nimport _ \"github.com/docker/docker/client\"", false},
		{"a log in a pure room", libraryFindings, "internal/wire/x.go", "package wire\nimport _ \"github.com/rs/zerolog\"", true},
		{"a program started by init", libraryFindings, "internal/supervise/x.go", "package supervise\nimport _ \"os/exec\"", true},
		{"a program started by a test of init", libraryFindings, "internal/supervise/x_test.go", "package supervise\nimport _ \"os/exec\"", false},
		{"a long function", sizeFindings, "api/x.go", "package api\nfunc f() {" + long + "}", true},
		{"a long file", sizeFindings, "api/x.go", "package api\n" + strings.Repeat("\n", 500), true},
		{"short ones", sizeFindings, "api/x.go", "package api\nfunc f() {}\n" + long, false},
		{"a drawer", nameFindings, "internal/util/x.go", "package util", true},
		{"a drawer's test", nameFindings, "internal/job/x_test.go", "package helpers_test", true},
		{"an init", initFindings, "api/x.go", "package api\nfunc init() { f() }", true},
		{"an init with more than the lock", initFindings, "api/x.go", "package api\nfunc init() { runtime.LockOSThread(); f() }", true},
		{"the lock of the main thread", initFindings, "api/x.go", "package api\nfunc init() { runtime.LockOSThread() }", false},
		{"a method called init", initFindings, "api/x.go", "package api\nfunc (x T) init() { f() }", false},
		{"a mount anywhere", linuxFindings, "internal/sandbox/x.go", "package sandbox\nfunc f() { unix.Mount() }", true},
		{"a mount at its place", linuxFindings, "internal/sandbox/x_linux.go", "package sandbox\nfunc f() { unix.Mount() }", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if found := c.rule(parse(t, c.path, []byte(c.text))); len(found) > 0 != c.bad {
				t.Errorf("findings: %q", found)
			}
		})
	}
}
