package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// cell is one field of a table. Its text is clean already.
type cell struct{ text, colour string }

// table writes rows in columns under a header.
func (a *app) table(header []string, rows [][]cell) error {
	widths := make([]int, len(header))
	for i, h := range header {
		widths[i] = len(h)
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].text))
		}
	}
	var b strings.Builder
	line := func(row []cell) {
		for i, c := range row {
			b.WriteString(a.stdout.paint(c.colour, c.text))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2))
			}
		}
		b.WriteByte('\n')
	}
	head := make([]cell, len(header))
	for i, h := range header {
		head[i] = cell{text: h}
	}
	line(head)
	for _, row := range rows {
		line(row)
	}
	_, err := a.stdout.Write([]byte(b.String()))
	return err
}

// shortID is enough of an id to tell jobs apart: its time of birth in milliseconds and some more.
func shortID(id string) string {
	if len(id) > 18 {
		id = id[:18]
	}
	return clean(id)
}

// ago writes how long ago a time in Unix milliseconds was.
func ago(ms int64, now time.Time) string {
	if ms == 0 {
		return "-"
	}
	d := now.Sub(time.UnixMilli(ms))
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// span writes milliseconds with three digits that count.
func span(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.String()
}

// size writes bytes in the largest unit that leaves a whole part.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
