package main

import (
	"os"

	"golang.org/x/sys/unix"
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// plain reports whether the environment asks for no colour and no moving parts.
func plain(getenv func(string) string) bool {
	ci := getenv("CI")
	term := getenv("TERM")
	return getenv("NO_COLOR") != "" || ci != "" && ci != "false" || term == "dumb" || term == ""
}

// Colours, as SGR numbers.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	grey   = "90"
)

// paint colours text where the output wants it.
func (o *output) paint(colour, text string) string {
	if !o.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// stateColour is the colour of a state or a status.
func stateColour(word string) string {
	switch word {
	case "success":
		return green
	case "running", "starting", "finishing", "waiting", "partial":
		return yellow
	case "queued", "cancelled":
		return grey
	}
	return red
}
