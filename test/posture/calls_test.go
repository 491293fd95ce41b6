package posture_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// call is one system call with what it may give; more than one errno only where kernels differ.
type call struct {
	name string
	abi  string // "" native, i386, x32
	nr   uint64
	args []string
	safe []string
}

func args(a ...string) []string     { return a }
func safe(errno ...string) []string { return errno }

// probeCall is a call as the probe reads it.
type probeCall struct {
	Name string   `json:"name"`
	ABI  string   `json:"abi"`
	NR   uint64   `json:"nr"`
	Args []string `json:"args"`
}

func (c call) key(row int) string { return fmt.Sprintf("%d %s", row, c.name) }

func allCalls() []probeCall {
	out := []probeCall{}
	for _, row := range slices.SortedFunc(maps.Keys(plainCalls), cmp.Compare[int]) {
		for _, c := range plainCalls[row] {
			out = append(out, probeCall{c.key(row), c.abi, c.nr, c.args})
		}
	}
	return out
}

// checkCalls holds what the calls of a row gave to what is safe.
func checkCalls(t *testing.T, w *world, row int) {
	t.Helper()
	if len(plainCalls) == 0 {
		t.Skip("not run: the table of system calls has the numbers of amd64")
	}
	lines := w.said(t, "calls")
	for _, c := range plainCalls[row] {
		expect(t, lines, c.key(row), c.safe...)
	}
}
