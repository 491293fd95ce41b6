package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// maxOutput bounds what is kept of one test's output, in bytes; the end tells more than the beginning.
const maxOutput = 256 << 10

// tally is what is known of the run so far.
type tally struct {
	out                     io.Writer
	passed, failed, skipped int
	notRun                  []string            // "package test: reason"
	open                    map[string]*results // packages that have begun and not ended
	builds                  map[string]string   // import path → compiler output
}

// results are those of one package.
type results struct {
	output string // outside of any test
	tests  map[string]*result
}

// result is one test's. Its state is "" while it runs.
type result struct {
	state    string
	output   string
	isParent bool
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, open: map[string]*results{}, builds: map[string]string{}}
}

func (t *tally) packageOf(name string) *results {
	p := t.open[name]
	if p == nil {
		p = &results{tests: map[string]*result{}}
		t.open[name] = p
	}
	return p
}

func (t *tally) testEvent(e event) {
	p := t.packageOf(e.Package)
	r := p.tests[e.Test]
	if r == nil {
		r = &result{}
		p.tests[e.Test] = r
		if i := strings.LastIndexByte(e.Test, '/'); i >= 0 && p.tests[e.Test[:i]] != nil {
			p.tests[e.Test[:i]].isParent = true
		}
	}
	switch e.Action {
	case "output":
		r.output = keep(r.output, e.Output)
	case "pass", "fail", "skip":
		r.state = e.Action
	}
	if r.state == "pass" {
		r.output = ""
	}
}

func (t *tally) packageEvent(e event) {
	p := t.packageOf(e.Package)
	switch e.Action {
	case "output":
		p.output = keep(p.output, e.Output)
	case "pass", "skip", "fail":
		if e.Action == "fail" && e.FailedBuild != "" {
			p.output = t.builds[e.FailedBuild] + p.output
			delete(t.builds, e.FailedBuild) // said once, though every importer fails by it
		}
		t.end(e.Package, p, e.Action == "fail", e.Elapsed)
	}
}

// end counts a package that has ended and prints its line, and what failed in it.
func (t *tally) end(name string, p *results, failed bool, seconds float64) {
	delete(t.open, name)
	var broken []string
	ran := 0
	for _, test := range slices.Sorted(maps.Keys(p.tests)) {
		switch r := p.tests[test]; {
		case r.state == "fail", r.state == "":
			broken = append(broken, test)
		case r.isParent:
		case r.state == "pass":
			ran++
		default:
			t.notRun = append(t.notRun, fmt.Sprintf("%s %s: %s", name, test, reason(r.output)))
		}
	}
	t.passed += ran
	if len(broken) == 0 && !failed {
		if len(p.tests) > 0 {
			fmt.Fprintf(t.out, "ok    %s  %d tests, %.1f s\n", name, ran, seconds)
		}
		return
	}
	fmt.Fprintf(t.out, "FAIL  %s  %.1f s\n", name, seconds)
	t.failed += max(1, countLeaves(broken))
	for _, test := range broken {
		if r := p.tests[test]; r.state == "" {
			fmt.Fprintf(t.out, "--- %s did not end\n%s", test, r.output)
		} else {
			fmt.Fprint(t.out, r.output)
		}
	}
	fmt.Fprint(t.out, p.output)
}

// countLeaves counts the names that are not parents of another: a test fails with its subtest.
func countLeaves(sorted []string) int {
	n := 0
	for _, name := range sorted {
		if !slices.ContainsFunc(sorted, func(s string) bool { return strings.HasPrefix(s, name+"/") }) {
			n++
		}
	}
	return n
}

// close ends the packages go test left open, and prints the lists and the closing line.
func (t *tally) close() bool {
	for _, name := range slices.Sorted(maps.Keys(t.open)) {
		t.end(name, t.open[name], true, 0)
	}
	for _, output := range t.builds {
		fmt.Fprint(t.out, output)
	}
	t.skipped = len(t.notRun)
	if t.skipped > 0 {
		fmt.Fprintf(t.out, "not run:\n  %s\n", strings.Join(t.notRun, "\n  "))
	}
	fmt.Fprintf(t.out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	return t.failed == 0 && t.passed > 0
}

// reason finds what a skipped test said, in its output.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

// keep appends to an output and cuts off what is too long at its beginning.
func keep(output, more string) string {
	output += more
	if len(output) > maxOutput {
		output = "[...]" + output[len(output)-maxOutput/2:]
	}
	return output
}
