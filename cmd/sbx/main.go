// sbx is the command line client of the sandboxd daemon, on the host and inside a job. It has one file a verb: flags,
// one client call, print.
//
// Exit codes. `sbx run` ends with the command's own code, or: 2 bad usage (nothing was sent), 120 denied, 121 budget
// exhausted, 122 unverified, 123 lost or cancelled, 124 timeout, 125 fault of the daemon or no daemon, 126 not
// executable, 127 not found, 128+n died of signal n, 130 Ctrl-C. The other verbs use 0, 2, 120 to 125 in the same
// sense, `sbx result` 1 for "not done yet", and `sbx daemon status` 3 for "down" and 4 for "engine down".
//
// What comes from the daemon and is not a job's own output is escaped before it is shown. A job's output is passed on
// byte by byte.
package main

import (
	"context"
	"os"
)

func main() {
	a := &app{args: os.Args, stdin: os.Stdin, stdout: &output{f: os.Stdout}, stderr: &output{f: os.Stderr}}
	a.stdout.colour = isTerminal(os.Stdout) && !plain(os.Getenv)
	a.stderr.colour = isTerminal(os.Stderr) && !plain(os.Getenv)
	os.Exit(a.run(context.Background()))
}
