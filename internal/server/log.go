package server

import (
	"strings"

	"github.com/rs/zerolog"
)

// Keys of log lines.
const (
	keyRequest = "request" // number of the request since the daemon started; a problem of ours names it
	keyMethod  = "method"
	keyRoute   = "route"
	keyStatus  = "status"
	keyMS      = "ms"
	keyCaller  = "caller"
	keyPID     = "pid"
	keyJob     = "job"
	keyRoot    = "root"
	keyCode    = "code"
	keyPanic   = "panic"
	keyStack   = "stack"
	keyPath    = "path"
)

// httpLog takes what net/http says; nothing of it needs attention.
type httpLog struct{ log zerolog.Logger }

func (l httpLog) Write(p []byte) (int, error) {
	l.log.Debug().Msg(strings.TrimSpace(string(p)))
	return len(p), nil
}
