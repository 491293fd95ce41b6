package job_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"sandboxd/internal/job"
)

// The table's rows, written a second time so that a changed number is a decision.
var codes = map[job.Code]struct{ http, exit int }{
	job.CodeInvalid: {400, 120}, job.CodeNotFound: {404, 125}, job.CodeConflict: {409, 120}, job.CodeForbidden: {403, 120},
	job.CodeNotSubset: {403, 120}, job.CodeNotInRoster: {403, 120}, job.CodeQueueFull: {429, 120}, job.CodeTreeLimit: {403, 120},
	job.CodeDepthLimit: {403, 120}, job.CodeQuota: {429, 120}, job.CodeRateLimit: {429, 120}, job.CodeCapacity: {403, 120}, job.CodeDiskFloor: {507, 120},
	job.CodeBudgetExhausted: {403, 121}, job.CodeWorkspace: {403, 120}, job.CodeImage: {403, 120}, job.CodeFrozen: {403, 120},
	job.CodeWouldBlock: {409, 120},
	job.CodeDraining:   {503, 125}, job.CodeTooLarge: {413, 120}, job.CodeEngine: {502, 125}, job.CodeUnavailable: {503, 125},
	job.CodeInternal: {500, 125},
}

func TestEveryCodeHasItsHTTPStatusAndExitCode(t *testing.T) {
	declared := constants(t, "errors.go", "Code")
	listed := job.Codes()
	if len(declared) < 10 || len(listed) != len(declared) {
		t.Errorf("%d codes are declared, the table has %d", len(declared), len(listed))
	}
	for _, name := range declared {
		c := job.Code(name)
		want, known := codes[c]
		switch {
		case !slices.Contains(listed, c):
			t.Errorf("%s has no row in the table", c)
		case !known:
			t.Errorf("%s is new: add it to this test", c)
		case c.HTTPStatus() != want.http || c.ExitCode() != want.exit:
			t.Errorf("%s: HTTP %d, exit %d; want %d, %d", c, c.HTTPStatus(), c.ExitCode(), want.http, want.exit)
		}
	}
}

func TestCodesNobodyDeclaredAreOurFault(t *testing.T) {
	for _, c := range []job.Code{"", "nonsense", "INVALID"} {
		if c.HTTPStatus() != http.StatusInternalServerError || c.ExitCode() != job.ExitDaemon {
			t.Errorf("%q: HTTP %d, exit %d", c, c.HTTPStatus(), c.ExitCode())
		}
	}
}

func TestDenialsAreClientErrorsAndFaultsAreNot(t *testing.T) {
	for _, c := range job.Codes() {
		if s := c.HTTPStatus(); c.ExitCode() == job.ExitDenied && s >= 500 && s != http.StatusInsufficientStorage {
			t.Errorf("%s: a denial answers with %d", c, s)
		}
		if http.StatusText(c.HTTPStatus()) == "" {
			t.Errorf("%s: %d is no HTTP status", c, c.HTTPStatus())
		}
	}
}

func TestErrorTellsFieldAndCauseAndUnwraps(t *testing.T) {
	cause := errors.New("no route")
	for _, c := range []struct {
		err  *job.Error
		text string
	}{
		{job.Errorf(job.CodeInvalid, "limits.memory", "%d is too small", 1), "limits.memory: 1 is too small"},
		{job.Errorf(job.CodeInvalid, "", "no command"), "no command"},
		{job.Wrap(job.CodeEngine, cause, "the engine is away"), "the engine is away: no route"},
		{job.Errorf(job.CodeInvalid, "env.%s%d", "100%% sure"), "env.%s%d: 100% sure"},
	} {
		if c.err.Error() != c.text {
			t.Errorf("%q, want %q", c.err.Error(), c.text)
		}
		if code := job.CodeOf(fmt.Errorf("step: %w", c.err)); code != c.err.Code {
			t.Errorf("%q: code %s", c.text, code)
		}
	}
	if !errors.Is(fmt.Errorf("step: %w", job.Wrap(job.CodeEngine, cause, "x")), cause) {
		t.Error("the cause is lost")
	}
	if c := job.CodeOf(cause); c != job.CodeInternal {
		t.Errorf("an error without a code has %s", c)
	}
	if e := job.Errorf(job.CodeImage, "", "x").WithHint("try %s", "y"); e.Hint != "try y" || e.Error() != "x" {
		t.Errorf("%+v", e)
	}
}

func TestCallersAreNamedByTheirSocket(t *testing.T) {
	c := job.HostCaller(4294967294, 7, []uint32{1, 2}, 99, true)
	if c.Principal != "uid:4294967294" || c.UID != 4294967294 || c.GID != 7 || len(c.Groups) != 2 || c.PID != 99 || !c.Admin || c.Job != "" {
		t.Errorf("%+v", c)
	}
}
