package job

import "net/http"

// Exit codes of `sbx run` that are ours; a command's own code passes through.
const (
	ExitUsage           = 2
	ExitDenied          = 120
	ExitBudgetExhausted = 121
	ExitUnverified      = 122
	ExitLost            = 123
	ExitTimeout         = 124
	ExitDaemon          = 125
	ExitNotExecutable   = 126
	ExitNotFound        = 127
	ExitInterrupted     = 130
)

// codeRow is one line of the only table from code to HTTP status and exit code.
type codeRow struct{ http, exit int }

var codeTable = map[Code]codeRow{
	CodeInvalid:         {http.StatusBadRequest, ExitDenied},
	CodeNotFound:        {http.StatusNotFound, ExitDaemon},
	CodeConflict:        {http.StatusConflict, ExitDenied},
	CodeForbidden:       {http.StatusForbidden, ExitDenied},
	CodeNotSubset:       {http.StatusForbidden, ExitDenied},
	CodeNotInRoster:     {http.StatusForbidden, ExitDenied},
	CodeQueueFull:       {http.StatusTooManyRequests, ExitDenied},
	CodeTreeLimit:       {http.StatusForbidden, ExitDenied},
	CodeDepthLimit:      {http.StatusForbidden, ExitDenied},
	CodeQuota:           {http.StatusTooManyRequests, ExitDenied},
	CodeRateLimit:       {http.StatusTooManyRequests, ExitDenied},
	CodeCapacity:        {http.StatusForbidden, ExitDenied},
	CodeWouldBlock:      {http.StatusConflict, ExitDenied},
	CodeDiskFloor:       {http.StatusInsufficientStorage, ExitDenied},
	CodeBudgetExhausted: {http.StatusForbidden, ExitBudgetExhausted},
	CodeWorkspace:       {http.StatusForbidden, ExitDenied},
	CodeImage:           {http.StatusForbidden, ExitDenied},
	CodeFrozen:          {http.StatusForbidden, ExitDenied},
	CodeDraining:        {http.StatusServiceUnavailable, ExitDaemon},
	CodeTooLarge:        {http.StatusRequestEntityTooLarge, ExitDenied},
	CodeEngine:          {http.StatusBadGateway, ExitDaemon},
	CodeUnavailable:     {http.StatusServiceUnavailable, ExitDaemon},
	CodeInternal:        {http.StatusInternalServerError, ExitDaemon},
}

// HTTPStatus is the status a code answers with; an unknown code is our fault (500).
func (c Code) HTTPStatus() int {
	if row, ok := codeTable[c]; ok {
		return row.http
	}
	return http.StatusInternalServerError
}

// ExitCode is what `sbx` ends with for a code; an unknown code is a daemon fault (125).
func (c Code) ExitCode() int {
	if row, ok := codeTable[c]; ok {
		return row.exit
	}
	return ExitDaemon
}

// Codes lists every code, in no order.
func Codes() []Code {
	out := make([]Code, 0, len(codeTable))
	for c := range codeTable {
		out = append(out, c)
	}
	return out
}
