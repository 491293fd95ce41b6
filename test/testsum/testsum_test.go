package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stream writes events as go test does.
func stream(t *testing.T, events ...event) string {
	t.Helper()
	var all strings.Builder
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(line, '\n'))
	}
	return all.String()
}

func TestAStreamIsCounted(t *testing.T) {
	run := func(action, test string) event { return event{Action: action, Package: "p", Test: test} }
	says := func(test, text string) event { return event{Action: "output", Package: "p", Test: test, Output: text} }
	for _, c := range []struct {
		name   string
		events []event
		ok     bool
		last   string
		said   string // part of the report
	}{
		{
			"a parent counts by its subtests",
			[]event{run("run", "T"), run("run", "T/a"), run("run", "T/b"), run("pass", "T/a"), run("pass", "T/b"), run("pass", "T"), run("pass", "")},
			true, "2 passed, 0 failed, 0 skipped", "ok    p  2 tests",
		},
		{
			"a failure is shown and fails its parent without counting twice",
			[]event{run("run", "T"), run("run", "T/a"), says("T/a", "x_test.go:1: broke\n"), run("fail", "T/a"), run("fail", "T"), run("fail", "")},
			false, "0 passed, 1 failed, 0 skipped", "broke",
		},
		{
			"a parent that fails on its own counts",
			[]event{run("run", "T"), run("run", "T/a"), run("pass", "T/a"), run("fail", "T"), run("fail", "")},
			false, "1 passed, 1 failed, 0 skipped", "FAIL  p",
		},
		{
			"a skip is listed with its reason",
			[]event{run("run", "T"), run("pass", "T"), run("run", "S"), says("S", "=== RUN   S\n"), says("S", "    s_test.go:9: no runsc here\n"), run("skip", "S"), run("pass", "")},
			true, "1 passed, 0 failed, 1 skipped", "not run:\n  p S: s_test.go:9: no runsc here",
		},
		{
			"a panic or a timeout leaves a test open",
			[]event{run("run", "T"), says("T", "panic: timed out\n"), run("fail", "")},
			false, "0 passed, 1 failed, 0 skipped", "T did not end\npanic: timed out",
		},
		{
			"go test that was killed leaves a package open",
			[]event{run("start", ""), run("run", "T"), run("pass", "T")},
			false, "1 passed, 1 failed, 0 skipped", "FAIL  p",
		},
		{
			"a package that does not build fails",
			[]event{
				{Action: "build-output", ImportPath: "p [p.test]", Output: "x.go:1: undefined: y\n"}, {Action: "build-fail", ImportPath: "p [p.test]"},
				run("start", ""), {Action: "fail", Package: "p", FailedBuild: "p [p.test]"},
			},
			false, "0 passed, 1 failed, 0 skipped", "undefined: y",
		},
		{"all skipped is no pass", []event{run("run", "S"), run("skip", "S"), run("pass", "")}, false, "0 passed, 0 failed, 1 skipped", "no reason given"},
		{"packages without tests are no pass", []event{run("start", ""), run("skip", "")}, false, "0 passed, 0 failed, 0 skipped", ""},
		{"nothing at all", nil, false, "0 passed, 0 failed, 0 skipped", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			ok := summarise(strings.NewReader(stream(t, c.events...)), &out)
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if ok != c.ok || lines[len(lines)-1] != c.last || !strings.Contains(out.String(), c.said) {
				t.Errorf("ok %v, want %v; want the last line %q and %q in:\n%s", ok, c.ok, c.last, c.said, out.String())
			}
		})
	}
}

func TestLinesThatAreNoEventsArePassedOn(t *testing.T) {
	var out strings.Builder
	summarise(strings.NewReader("go: cannot find main module\n{}\nunfinished"), &out)
	if !strings.HasPrefix(out.String(), "go: cannot find main module\n{}\nunfinished") {
		t.Errorf("got %q", out.String())
	}
}

func TestLongOutputKeepsItsEnd(t *testing.T) {
	var output string
	for range 100 {
		output = keep(output, strings.Repeat("x", 10_000))
	}
	if output = keep(output, "the end"); len(output) > maxOutput || !strings.HasSuffix(output, "the end") {
		t.Errorf("%d bytes, ending %q", len(output), output[len(output)-10:])
	}
}

// The stream is go's, and may change with it: so once with the real one.
func TestTheRealGoTestIsUnderstood(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":        "module m\n\ngo 1.26\n",
		"a/a_test.go":   "package a\nimport \"testing\"\nfunc TestP(t *testing.T) {}\nfunc TestS(t *testing.T) { t.Skip(\"why\") }\nfunc TestF(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Error(\"wrong\") }) }\n",
		"b/b_test.go":   "package b\nimport \"testing\"\nfunc TestB(t *testing.T) { undefined() }\n",
		"c/c_test.go":   "package c\nimport (\"os\"; \"testing\")\nfunc TestExit(t *testing.T) { os.Exit(3) }\n",
		"d/d.go":        "package d\n",
		"e/e_test.go":   "package e\nimport \"testing\"\nfunc TestMain(m *testing.M) { println(\"before\"); panic(\"main\") }\n",
		"f/f_test.go":   "package f\nimport \"testing\"\nfunc TestPanic(t *testing.T) { panic(\"boom\") }\n",
		"f/g/g_test.go": "package g\nimport \"testing\"\nfunc TestP(t *testing.T) {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "test", "-vet=off", "-json", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	events, _ := cmd.Output() // fails, as it should
	var out strings.Builder
	ok := summarise(strings.NewReader(string(events)), &out)
	got := out.String()
	for _, want := range []string{"wrong", "TestS: a_test.go:4: why", "undefined: undefined", "panic: main", "panic: boom", "FAIL  m/c", "ok    m/f/g  1 tests"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if ok || !strings.HasSuffix(got, "\n2 passed, 5 failed, 1 skipped\n") {
		t.Error("want the last line: 2 passed, 5 failed, 1 skipped")
	}
	if t.Failed() {
		t.Log(got)
	}
}
