package results_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sandboxd/internal/results"
)

func TestHeadline(t *testing.T) {
	long := strings.Repeat("ä", 2049)
	tests := []struct {
		name      string
		in        string
		cut       bool
		want      string
		truncated bool
		runes     int
	}{
		{"nothing", "", false, "", false, 0},
		{"a line", "done\n", false, "done", false, 0},
		{"line ends at the end", "a\nb\r\n\n", false, "a\nb", false, 0},
		{"just fits", strings.Repeat("ä", 2048) + "\n", false, strings.Repeat("ä", 2048), false, 0},
		{"one too many", long, false, "…" + strings.Repeat("ä", 2047), true, 2049},
		{"the end is kept", "x" + long + "end", false, "…" + strings.Repeat("ä", 2044) + "end", true, 2053},
		{"not UTF-8", "a\xff\xc3b", false, "a\ufffd\ufffdb", false, 0},
		{"a rune cut at its end", "ok \xe2\x82", false, "ok \ufffd\ufffd", false, 0},
		{"cut before, in a rune", "\x82\xacrest\n", true, "…rest", true, 0},
		{"cut before, too long as well", long, true, "…" + strings.Repeat("ä", 2047), true, 0},
		{"cut before, only line ends left", "\n\n", true, "…", true, 0},
		{"cut before, not UTF-8", "\x80\x80\x80\x80a", true, "…\ufffda", true, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, truncated, runes := results.Headline([]byte(tt.in), tt.cut)
			if got != tt.want || truncated != tt.truncated || runes != tt.runes {
				t.Errorf("%q, %t, %d; want %q, %t, %d", got, truncated, runes, tt.want, tt.truncated, tt.runes)
			}
		})
	}
}

func TestHeadlineIsBoundedText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "text")
		cut := rapid.Bool().Draw(t, "cut")
		got, truncated, runes := results.Headline(b, cut)
		n := utf8.RuneCountInString(got)
		if !utf8.ValidString(got) || n > 2048 {
			t.Fatalf("%d runes, valid %t", n, utf8.ValidString(got))
		}
		if truncated != strings.HasPrefix(got, "…") && !strings.HasPrefix(string(b), "…") {
			t.Fatalf("truncated %t, begins with %.3q", truncated, got)
		}
		if truncated != (cut || runes > 2048) || runes > 0 && (cut || runes <= 2048) {
			t.Fatalf("truncated %t, runes %d, cut %t", truncated, runes, cut)
		}
	})
}
