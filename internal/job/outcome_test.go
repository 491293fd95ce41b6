package job_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandboxd/internal/job"
)

// constants reads the values of all constants of a type from a source of the package.
func constants(t *testing.T, file, typ string) (out []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := v.Type.(*ast.Ident); !ok || id.Name != typ {
			return true
		}
		for _, e := range v.Values {
			s, err := strconv.Unquote(e.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		return true
	})
	return out
}

func exit(n int) *int { return &n }

func TestExitCodesOverEveryStatus(t *testing.T) {
	for _, c := range []struct {
		name        string
		o           job.Outcome
		run, status int
	}{
		{"success", job.Outcome{Status: job.Success, ExitCode: exit(0)}, 0, 0},
		{"success without a code", job.Outcome{Status: job.Success}, 0, 0},
		{"exited 1", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonExit, ExitCode: exit(1)}, 1, 1},
		{"exited 3", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonExit, ExitCode: exit(3)}, 3, 1},
		{"exited 255", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonExit, ExitCode: exit(255)}, 255, 1},
		{"exited 137 by itself", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonExit, ExitCode: exit(137)}, 137, 1},
		{"killed", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonSignal, Signal: 9}, 137, 1},
		{"terminated", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonSignal, Signal: 15}, 143, 1},
		{"out of memory by signal", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonOOM, Signal: 9, OOMKilled: true}, 137, 1},
		{"out of memory with a code", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonOOM, ExitCode: exit(12)}, 12, 1},
		{"not found", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonNotFound, ExitCode: exit(127)}, 127, 1},
		{"not executable", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonNotExecutable, ExitCode: exit(126)}, 126, 1},
		{"disk full", job.Outcome{Status: job.ErrorStatus, Reason: job.ReasonDiskFull, ExitCode: exit(1)}, 1, 1},
		{"an error that exited 0", job.Outcome{Status: job.ErrorStatus, ExitCode: exit(0)}, 1, 1},
		{"an error without a code", job.Outcome{Status: job.ErrorStatus}, 1, 1},
		{"partial by time", job.Outcome{Status: job.Partial, Reason: job.ReasonTimeBudget, ExitCode: exit(0)}, 0, 2},
		{"partial by iterations", job.Outcome{Status: job.Partial, Reason: job.ReasonIterationBudget}, 0, 0},
		{"partial that died", job.Outcome{Status: job.Partial, Reason: job.ReasonTimeBudget, Signal: 15}, 143, 2},
		{"timeout", job.Outcome{Status: job.Timeout, Reason: job.ReasonWallClock, Signal: 9}, 124, 2},
		{"timeout that exited 0", job.Outcome{Status: job.Timeout, ExitCode: exit(0)}, 124, 2},
		{"budget", job.Outcome{Status: job.BudgetExhausted}, 121, 4},
		{"cancelled", job.Outcome{Status: job.Cancelled, Reason: job.ReasonByCaller, Signal: 15}, 123, 1},
		{"cancelled that exited 0", job.Outcome{Status: job.Cancelled, ExitCode: exit(0)}, 123, 1},
		{"unverified", job.Outcome{Status: job.Unverified, Reason: job.ReasonNoAuthenticatedResult, ExitCode: exit(0)}, 122, 1},
		{"lost", job.Outcome{Status: job.Lost, Reason: job.ReasonVanished}, 123, 1},
		{"failed", job.Outcome{Status: job.Failed, Reason: job.ReasonImagePull}, 125, 3},
		{"no status at all", job.Outcome{}, 125, 1},
		{"a status nobody knows", job.Outcome{Status: "fine", ExitCode: exit(0)}, 125, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if run, status := c.o.RunExit(), c.o.StatusExit(); run != c.run || status != c.status {
				t.Errorf("exit %d, by status %d; want %d, %d", run, status, c.run, c.status)
			}
		})
	}
}

// Over every status, reason, code and signal: what did not succeed never exits 0, but a partial result may.
func TestOnlySuccessLooksLikeSuccess(t *testing.T) {
	for _, status := range job.Statuses() {
		for _, reason := range constants(t, "outcome.go", "Reason") {
			for _, code := range []*int{nil, exit(0), exit(1), exit(255)} {
				for _, signal := range []int{0, 9, 64} {
					o := job.Outcome{Status: status, Reason: job.Reason(reason), ExitCode: code, Signal: signal}
					run, by := o.RunExit(), o.StatusExit()
					if (run == 0) != (status == job.Success || status == job.Partial && signal == 0 && (code == nil || *code == 0)) {
						t.Fatalf("%+v: exit %d", o, run)
					}
					if (by == 0) != (status == job.Success || status == job.Partial && o.Reason == job.ReasonIterationBudget) {
						t.Fatalf("%+v: exit by status %d", o, by)
					}
					if run < 0 || run > 255 || by < 0 || by > 4 {
						t.Fatalf("%+v: exits %d, %d", o, run, by)
					}
				}
			}
		}
	}
}

func TestWordsOfOutcomesAreListedOnce(t *testing.T) {
	declared := constants(t, "outcome.go", "Status")
	if len(declared) != len(job.Statuses()) {
		t.Errorf("%d statuses are declared, %d listed", len(declared), len(job.Statuses()))
	}
	for _, s := range declared {
		if !slices.Contains(job.Statuses(), job.Status(s)) {
			t.Errorf("%s is not listed", s)
		}
	}
	seen := map[string]bool{}
	for _, r := range constants(t, "outcome.go", "Reason") {
		if seen[r] || r == "" || strings.Trim(r, "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("reason %q is used twice or is no plain word", r)
		}
		seen[r] = true
	}
	if len(seen) < 25 {
		t.Errorf("only %d reasons found", len(seen))
	}
}

func TestCancelCauseTravelsAsAnError(t *testing.T) {
	err := fmt.Errorf("context: %w", &job.CancelCause{Reason: job.ReasonLeaseLost, Kill: true})
	var c *job.CancelCause
	if !errors.As(err, &c) || c.Reason != job.ReasonLeaseLost || !c.Kill || c.Error() != "cancelled: lease_lost" {
		t.Errorf("%v", err)
	}
}
