// Command testsum reads the stream of `go test -json` on standard input and tells what happened: a line for each
// package, the output of what failed, every skipped test with its reason, and last the line
// "N passed, N failed, N skipped". It exits with 1 when anything failed and when no test passed at all.
//
// A test is counted where it has no subtests; one with subtests counts only when it failed on its own.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if !summarise(os.Stdin, os.Stdout) {
		os.Exit(1)
	}
}

// summarise reports whether tests ran and all of them passed.
func summarise(in io.Reader, out io.Writer) bool {
	t := newTally(out)
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			t.line(line)
		}
		if err == io.EOF {
			return t.close()
		}
		if err != nil {
			fmt.Fprintf(out, "testsum: the stream of go test broke: %v\n", err)
			t.failed++
			return t.close()
		}
	}
}

// event is one line of the stream, as `go doc test2json` and `go help buildjson` describe it.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build's events, in place of Package
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string // of a package's fail: the import path that did not build
}

// line takes one line of the stream. What is no event is passed on: it is go's own complaint.
func (t *tally) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		t.out.Write(line)
		return
	}
	switch {
	case e.Action == "build-output":
		t.builds[e.ImportPath] = keep(t.builds[e.ImportPath], e.Output)
	case e.Package == "":
	case e.Test == "":
		t.packageEvent(e)
	default:
		t.testEvent(e)
	}
}
