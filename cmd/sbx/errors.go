package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
	"sandboxd/client"
)

// Exit codes that are ours. The daemon sends those of a job (Outcome.RunExit) and of a refusal (Problem.ExitCode).
const (
	exitNotYet      = 1
	exitUsage       = 2
	exitDown        = 3
	exitEngineDown  = 4
	exitDenied      = 120
	exitBroke       = 121 // budget exhausted
	exitTimeout     = 124
	exitDaemon      = 125
	exitInterrupted = 130
)

// exitCode ends sbx with a code; what there was to say has been said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a command line that was refused before anything was sent.
type usageError struct {
	text  string
	meant string // what was probably meant
	help  string // what shows how it is done
}

func (e *usageError) Error() string {
	s := e.text
	if e.meant != "" {
		s += "; did you mean '" + e.meant + "'?"
	}
	if e.help != "" {
		s += " (see '" + e.help + "')"
	}
	return s
}

// usage makes a usage error of a verb.
func usage(cmd *cli.Command, format string, args ...any) error {
	return &usageError{text: cmd.Name + ": " + fmt.Sprintf(format, args...), help: cmd.FullName() + " --help"}
}

// notFound makes an error of the kind the daemon makes.
func notFound(detail, hint string) error {
	return &client.Error{Problem: api.Problem{
		Title: "Not Found", Status: 404, Code: client.CodeNotFound, Detail: detail, Hint: hint, ExitCode: exitDaemon,
	}}
}

var errInterrupted = errors.New("interrupted")

// end shows an error and returns the exit code.
func (a *app) end(err error) int {
	var code exitCode
	if err == nil {
		return 0
	}
	if errors.As(err, &code) {
		return int(code)
	}
	p := problemOf(err)
	text := p.Detail
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	a.note("%s", text)
	if a.json && !a.stdout.used.Load() {
		_ = a.printLine(p) // it has been told on stderr
	}
	return p.ExitCode
}

// note tells something on stderr, on one line.
func (a *app) note(format string, args ...any) {
	wipe := ""
	if a.spinning.Load() {
		wipe = "\r\x1b[K"
	}
	_, _ = fmt.Fprintf(a.stderr, "%ssbx: %s\n", wipe, clean(fmt.Sprintf(format, args...)))
}

// problemOf puts any error into the shape of the daemon's, with the exit code that goes with it.
func problemOf(err error) api.Problem {
	var (
		refused *client.Error
		socket  *client.SocketError
		bad     *usageError
	)
	switch {
	case errors.As(err, &refused):
		p := refused.Problem
		p.Detail = refused.Error()
		if p.Code != client.CodeInvalid && (p.ExitCode == exitDenied || p.ExitCode == exitBroke) {
			p.Detail = "denied (" + p.Code + "): " + p.Detail
		}
		if p.Code == client.CodeNotFound && p.Hint == "" {
			p.Hint = "see 'sbx ps -a'"
		}
		if p.ExitCode <= 0 || p.ExitCode > 255 {
			p.ExitCode = exitDaemon
		}
		return p
	case errors.As(err, &socket):
		return api.Problem{
			Title: socket.Kind.Error(), Code: strings.ReplaceAll(socket.Kind.Error(), " ", "_"),
			Detail: socket.Detail, Hint: socket.Hint, ExitCode: exitDaemon,
		}
	case errors.As(err, &bad):
		return api.Problem{Title: "usage", Code: "usage", Detail: bad.Error(), ExitCode: exitUsage}
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return api.Problem{Title: "interrupted", Code: "interrupted", Detail: err.Error(), ExitCode: exitInterrupted}
	}
	return api.Problem{Title: "fault", Code: "client", Detail: err.Error(), ExitCode: exitDaemon}
}

// printJSON writes v to stdout as one indented document.
func (a *app) printJSON(v any) error {
	b, err := marshal(v, "  ")
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(b)
	return err
}

// printLine writes v to stdout as JSON on one line.
func (a *app) printLine(v any) error {
	b, err := marshal(v, "")
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(b)
	return err
}

func marshal(v any, indent string) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding the reply: %w", err)
	}
	return escapeJSON(b.String()), nil
}
