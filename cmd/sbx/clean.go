package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// clean makes text of others safe to show on one line: control characters, terminal escapes, characters that turn
// the direction of writing, and bytes that are no UTF-8 are written as \n, \x1b, \u202e, \xff.
func clean(s string) string { return escape(s, "") }

// cleanLines is clean for text of several lines: newlines and tabs stay.
func cleanLines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	safe := func(r rune) bool { return strconv.IsPrint(r) || strings.ContainsRune(keep, r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case safe(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		i += n
	}
	return b.String()
}

// escapeJSON writes what a terminal might obey, and encoding/json leaves as it is, as \u escapes. Such characters
// stand only inside strings there, so the document stays the same.
func escapeJSON(s string) []byte {
	var b []byte
	for _, r := range s {
		switch {
		case r == '\n' || strconv.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, hi, lo)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}

// cut shortens text to n characters; the end that is missing is marked.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
