package results

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxHeadline bounds a summary in runes, the mark of a cut included.
const maxHeadline = 2048

const cutMark = '…'

// Headline makes the summary of a result from the end of its text. Line ends at the end are dropped, and each byte that
// is not UTF-8 becomes U+FFFD. What is too long keeps its end behind a leading "…". cut says that text was lost before
// b already.
//
// truncated says whether the summary lacks something; runes is then the length of the whole text, 0 when that is not
// known. A text that fits has neither.
func Headline(b []byte, cut bool) (summary string, truncated bool, runes int) {
	if cut {
		b = b[inRune(b):]
	}
	b = bytes.TrimRight(b, "\r\n")
	total := utf8.RuneCount(b)
	if !cut && total <= maxHeadline {
		return decode(b), false, 0
	}
	start, room := len(b), maxHeadline-1
	for ; room > 0 && start > 0; room-- {
		_, n := utf8.DecodeLastRune(b[:start])
		start -= n
	}
	if cut {
		total = 0
	}
	return string(cutMark) + decode(b[start:]), true, total
}

// inRune is how many bytes at the beginning of b are the rest of a rune that was cut.
func inRune(b []byte) int {
	n := 0
	for n < len(b) && n < utf8.UTFMax-1 && !utf8.RuneStart(b[n]) {
		n++
	}
	return n
}

func decode(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}
